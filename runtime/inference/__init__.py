"""The inference daemon: servables, batching, devices. The only TensorFlow in the house."""
