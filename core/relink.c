/* Rebinds imported functions of one loaded library by writing to its global offset table, as the dynamic
 * linker does; other libraries are not affected. Uses the dynamic linker's list of objects (64-bit ELF on
 * Linux). */
#define _GNU_SOURCE
#include "core/relink.h"

#include <stdint.h>
#include <string.h>

#if defined(__linux__) && defined(__LP64__)
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { CALL = R_X86_64_JUMP_SLOT, ADDRESS = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { CALL = R_AARCH64_JUMP_SLOT, ADDRESS = R_AARCH64_GLOB_DAT };
#else
enum { CALL = -1, ADDRESS = -1 };
#endif

typedef struct object {
    uintptr_t wanted; /* an address inside the object that is searched for */
    uintptr_t base, read_only, read_only_end;
    const ElfW(Dyn) * dynamic;
} object;

static int find(struct dl_phdr_info *info, size_t size, void *p)
{
    object *o = p;
    bool found = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && o->wanted - from < h->p_memsz) found = true;
    }
    if (!found || !info->dlpi_name || !*info->dlpi_name) return found; /* the program has no name */
    o->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = o->base + h->p_vaddr;
        if (h->p_type == PT_DYNAMIC) o->dynamic = (const ElfW(Dyn) *)from;
        if (h->p_type == PT_GNU_RELRO) o->read_only = from, o->read_only_end = from + h->p_memsz;
    }
    return 1;
}

typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * list[2];
    size_t count[2];
} tables;

static tables read_tables(const object *o)
{
    tables t = {0};
    size_t bytes[2] = {0};
    for (const ElfW(Dyn) *d = o->dynamic; d->d_tag != DT_NULL; d++) {
        uintptr_t at = d->d_un.d_ptr; /* glibc stores addresses there, musl leaves offsets */
        if (at < o->base) at += o->base;
        switch (d->d_tag) {
        case DT_SYMTAB: t.symbols = (const ElfW(Sym) *)at; break;
        case DT_STRTAB: t.names = (const char *)at; break;
        case DT_JMPREL: t.list[0] = (const ElfW(Rela) *)at; break;
        case DT_RELA: t.list[1] = (const ElfW(Rela) *)at; break;
        case DT_PLTRELSZ: bytes[0] = d->d_un.d_val; break;
        case DT_RELASZ: bytes[1] = d->d_un.d_val; break;
        default: break;
        }
    }
    for (int i = 0; i < 2; i++) t.count[i] = t.list[i] ? bytes[i] / sizeof(ElfW(Rela)) : 0;
    if (!t.symbols || !t.names) t.count[0] = t.count[1] = 0;
    return t;
}

/* The name of the imported function that a relocation binds; NULL: a relocation of another kind. */
static const char *import_of(const tables *t, const ElfW(Rela) * r)
{
    unsigned kind = (unsigned)ELF64_R_TYPE(r->r_info);
    if (kind != (unsigned)CALL && kind != (unsigned)ADDRESS) return NULL;
    const ElfW(Sym) *s = &t->symbols[ELF64_R_SYM(r->r_info)];
    return s->st_shndx == SHN_UNDEF ? t->names + s->st_name : NULL;
}

static const proa__binding *binding_of(const char *name, const proa__binding *bindings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, bindings[i].name) == 0) return &bindings[i];
    return NULL;
}

/* Makes the pages that the linker has sealed writable, or seals them again; it seals whole pages only. */
static bool seal(const object *o, bool sealed)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = o->read_only & ~(page - 1);
    uintptr_t end = o->read_only_end & ~(page - 1);
    return end <= from ||
           mprotect((void *)from, end - from, sealed ? PROT_READ : PROT_READ | PROT_WRITE) == 0;
}

/* Visits every import. write false: checks that each import with one of the prefixes is in the list; true:
 * binds the imports of the list. */
static bool visit(const object *o, const proa__binding *bindings, size_t n, const char *const *prefixes,
                  bool write)
{
    tables t = read_tables(o);
    int found = 0;
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < t.count[i]; k++) {
            const ElfW(Rela) *r = &t.list[i][k];
            const char *name = import_of(&t, r);
            bool ours = false;
            for (const char *const *p = prefixes; name && *p; p++) ours |= strncmp(name, *p, strlen(*p)) == 0;
            if (!ours) continue;
            const proa__binding *b = binding_of(name, bindings, n);
            if (!b) return false;
            found += b->function != NULL;
            if (!write || !b->function) continue;
            uintptr_t *slot = (uintptr_t *)(o->base + r->r_offset);
            __atomic_store_n(slot, (uintptr_t)b->function, __ATOMIC_RELEASE);
        }
    }
    return found > 0;
}

bool proa__relink(void (*function)(void), const proa__binding *bindings, size_t n,
                  const char *const *prefixes)
{
    object o = {.wanted = (uintptr_t)function};
    if (!dl_iterate_phdr(find, &o) || !o.dynamic) return false;
    if (!visit(&o, bindings, n, prefixes, false) || !seal(&o, false)) return false;
    (void)visit(&o, bindings, n, prefixes, true);
    (void)seal(&o, true); /* pages that stay writable do no harm */
    return true;
}

#else

bool proa__relink(void (*function)(void), const proa__binding *bindings, size_t n,
                  const char *const *prefixes)
{
    (void)function, (void)bindings, (void)n, (void)prefixes;
    return false;
}
#endif
