/* The bytes behind an ArrayBuffer, a typed array or a DataView. */

/* Finds the bytes that `value` shows now. A detached or shrunken view has none; a value that is not
   a view gives false. The address is good only until JavaScript or the allocator runs. */
static bool bytes_of(JSValueConst value, uint8_t **bytes, size_t *length)
{
    JSObject *object;
    JSArrayBuffer *buffer;
    JSTypedArray *view;
    size_t available, offset;

    *bytes = NULL;
    *length = 0;
    if (JS_VALUE_GET_TAG(value) != JS_TAG_OBJECT)
        return false;
    object = JS_VALUE_GET_OBJ(value);
    if (object->class_id == JS_CLASS_ARRAY_BUFFER) {
        buffer = object->u.array_buffer;
        *bytes = buffer->data;
        *length = buffer->detached ? 0 : (size_t)buffer->byte_length;
        return true;
    }
    if (!is_typed_array(object->class_id) && object->class_id != JS_CLASS_DATAVIEW)
        return false;
    view = object->u.typed_array;
    buffer = view->buffer->u.array_buffer;
    offset = view->offset;
    if (buffer->detached || offset > (size_t)buffer->byte_length)
        return true;
    available = (size_t)buffer->byte_length - offset;
    if (view->track_rab) {
        if (object->class_id != JS_CLASS_DATAVIEW)
            available &= ~(((size_t)1 << typed_array_size_log2(object->class_id)) - 1);
    } else if (view->length <= available) {
        available = view->length;
    } else {
        return true; /* the buffer shrank below the view */
    }
    *bytes = buffer->data + offset;
    *length = available;
    return true;
}

/* As bytes_of, but throws a TypeError for anything that has no bytes. */
static bool require_bytes(JSContext *ctx, JSValueConst value, uint8_t **bytes, size_t *length)
{
    if (bytes_of(value, bytes, length))
        return true;
    JS_ThrowTypeError(ctx, "expected an ArrayBuffer or a view of one");
    return false;
}

/* Makes a Uint8Array of `length` bytes for the caller to fill through `bytes`. */
static JSValue new_bytes(JSContext *ctx, size_t length, uint8_t **bytes)
{
    JSValue array;
    size_t got;
    JSValue buffer = js_array_buffer_constructor1(ctx, JS_UNDEFINED, length, NULL);

    if (JS_IsException(buffer))
        return JS_EXCEPTION;
    array = js_new_uint8array(ctx, buffer);
    if (!JS_IsException(array))
        bytes_of(array, bytes, &got);
    return array;
}
