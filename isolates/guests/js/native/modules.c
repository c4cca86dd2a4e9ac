/* The module table: the host adds every source before the main module is evaluated, and imports
   find them here. */

struct module_source {
    struct module_source *next;
    char *source; /* with a NUL after it; given back once the module has been evaluated */
    size_t source_length;
    char name[];
};

enum { MODULE_BUCKETS = 256 };

static struct module_source *module_table[MODULE_BUCKETS];
static JSModuleDef *main_module; /* set once it has been evaluated */

static struct module_source **module_bucket(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return &module_table[hash % MODULE_BUCKETS];
}

static struct module_source *find_module(const char *name)
{
    struct module_source *module = *module_bucket(name);

    while (module && strcmp(module->name, name))
        module = module->next;
    return module;
}

/* Copies a source into the table, in place of an earlier one of that name. False when there is no
   memory. */
static bool add_module(const char *name, const char *source, size_t source_length)
{
    struct module_source *module = find_module(name), **bucket;
    char *copy = malloc(source_length + 1);

    if (!copy)
        return false;
    memcpy(copy, source, source_length);
    copy[source_length] = 0;
    if (!module) {
        module = malloc(sizeof *module + strlen(name) + 1);
        if (!module) {
            free(copy);
            return false;
        }
        strcpy(module->name, name);
        module->source = NULL;
        bucket = module_bucket(name);
        module->next = *bucket;
        *bucket = module;
    }
    free(module->source);
    module->source = copy;
    module->source_length = source_length;
    return true;
}

/* The module that `path` means, tried as TypeScript and bundlers do: as it is, with an extension, as
   a folder, with ".js" read as ".ts". There must be room for the longest suffix after `path`. */
static struct module_source *find_module_like(char *path)
{
    static const char *const suffixes[] = {
        ".js",       ".mjs",       ".ts",        ".tsx",       ".jsx",
        ".mts",      ".json",      ".txt",       "/index.js",  "/index.mjs",
        "/index.ts", "/index.tsx", "/index.jsx", "/index.mts", "/index.json",
    };
    static const char *const compiled[][2] = {
        { ".js", ".ts" },
        { ".js", ".tsx" },
        { ".jsx", ".tsx" },
        { ".mjs", ".mts" },
    };
    size_t length = strlen(path), i, extension;
    struct module_source *module = find_module(path);

    for (i = 0; !module && i < countof(suffixes); i++) {
        strcpy(path + length, length ? suffixes[i] : suffixes[i] + (suffixes[i][0] == '/'));
        module = find_module(path);
    }
    path[length] = 0;
    for (i = 0; !module && i < countof(compiled); i++) {
        extension = strlen(compiled[i][0]);
        if (length <= extension || strcmp(path + length - extension, compiled[i][0]))
            continue;
        strcpy(path + length - extension, compiled[i][1]);
        module = find_module(path);
        strcpy(path + length - extension, compiled[i][0]);
    }
    return module;
}

enum { LONGEST_SUFFIX = 16 };

/* Joins a relative specifier to the folder of `base`, resolving "." and "..". NULL when it leaves
   the root. */
static char *join_path(JSContext *ctx, const char *base, const char *specifier)
{
    const char *slash = specifier[0] == '/' ? NULL : strrchr(base, '/');
    size_t folder = slash ? (size_t)(slash - base) + 1 : 0, end = 0, segment;
    const char *at = specifier;
    char *path = js_malloc(ctx, folder + strlen(specifier) + LONGEST_SUFFIX + 2);

    if (!path)
        return NULL;
    memcpy(path, base, folder);
    end = folder;
    while (*at) {
        segment = strcspn(at, "/");
        if (segment == 2 && at[0] == '.' && at[1] == '.') {
            if (end == 0) {
                js_free(ctx, path);
                return NULL;
            }
            for (end--; end && path[end - 1] != '/'; end--)
                ;
        } else if (segment && !(segment == 1 && at[0] == '.')) {
            memcpy(path + end, at, segment);
            end += segment;
            if (at[segment] == '/')
                path[end++] = '/';
        }
        at += segment + (at[segment] == '/');
    }
    while (end && path[end - 1] == '/')
        end--; /* "./folder/" and ".." name a folder: its index is tried */
    path[end] = 0;
    return path;
}

static const char FILE_SCHEME[] = "file:///";

/* The engine's hook: the full name of what `specifier` means in the module `base` (js_malloc), or
   an exception. */
static char *resolve_specifier(JSContext *ctx, const char *base, const char *specifier,
                               void *opaque)
{
    struct module_source *module = NULL;
    const char *local = specifier;
    bool is_path;
    char *path;

    if (!strncmp(specifier, FILE_SCHEME, sizeof FILE_SCHEME - 1)) /* made from import.meta.url */
        local = specifier + sizeof FILE_SCHEME - 2;
    is_path = local[0] == '/' || !strncmp(local, "./", 2) || !strncmp(local, "../", 3) ||
              !strcmp(local, ".") || !strcmp(local, "..");
    if (is_path) {
        path = join_path(ctx, base, local);
        if (!path && JS_HasException(ctx))
            return NULL;
        if (path)
            module = find_module_like(path);
        js_free(ctx, path);
    } else {
        module = find_module(local);
    }
    if (module)
        return js_strdup(ctx, module->name);
    JS_ThrowReferenceError(ctx, "No such module \"%.120s\", imported from \"%.100s\"", specifier,
                           base);
    return NULL;
}

static int set_import_meta(JSContext *ctx, JSModuleDef *module, const char *name)
{
    JSValue meta = JS_GetImportMeta(ctx, module), url;
    size_t length = sizeof FILE_SCHEME + strlen(name);
    char *text;

    if (JS_IsException(meta))
        return -1;
    text = js_malloc(ctx, length);
    if (text) {
        strcpy(text, FILE_SCHEME);
        strcat(text, name);
        url = JS_NewStringLen(ctx, text, length - 1);
        js_free(ctx, text);
        if (!JS_IsException(url) &&
            JS_DefinePropertyValueStr(ctx, meta, "url", url, JS_PROP_C_W_E) >= 0) {
            JS_FreeValue(ctx, meta);
            return 0;
        }
    }
    JS_FreeValue(ctx, meta);
    return -1;
}

/* The engine's hook: compiles a module of the table, and with it all that it imports. */
static JSModuleDef *load_module(JSContext *ctx, const char *name, void *opaque)
{
    struct module_source *module = find_module(name);
    JSAtom atom = JS_NewAtom(ctx, name);
    JSModuleDef *compiled;
    JSValue value;

    /* The table holds JavaScript only, so import attributes change nothing: one name is one module.
     */
    compiled = atom == JS_ATOM_NULL ? NULL : js_find_loaded_module_by_name(ctx, atom);
    JS_FreeAtom(ctx, atom);
    if (compiled)
        return compiled;
    if (!module || !module->source) {
        JS_ThrowReferenceError(ctx, "No such module \"%.200s\"", name);
        return NULL;
    }
    value = JS_Eval(ctx, module->source, module->source_length, module->name,
                    JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
    if (JS_IsException(value))
        return NULL;
    compiled = JS_VALUE_GET_PTR(value);
    JS_FreeValue(ctx, value); /* the engine's list of loaded modules holds it */
    return set_import_meta(ctx, compiled, name) ? NULL : compiled;
}

/* Gives back the sources that can never be compiled again: an image is then as small as it can be.
 */
static void free_evaluated_sources(JSContext *ctx)
{
    struct list_head *el;

    list_for_each(el, &ctx->loaded_modules)
    {
        JSModuleDef *loaded = list_entry(el, JSModuleDef, link);
        const char *name = JS_AtomToCString(ctx, loaded->module_name);
        struct module_source *module = name ? find_module(name) : NULL;

        if (module && loaded->status == JS_MODULE_STATUS_EVALUATED) {
            free(module->source);
            module->source = NULL;
        }
        JS_FreeCString(ctx, name);
    }
}

/* mainNamespace() -> the namespace of the evaluated main module, or undefined */
static JSValue host_main_namespace(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    return main_module ? JS_GetModuleNamespace(ctx, main_module) : JS_UNDEFINED;
}
