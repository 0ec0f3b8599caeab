/* A stand-in for libnvidia-ml.so.1, for tests: the real Python binding runs on it.
 *
 * What it answers is in the text file named by FAKE_NVML_STATE, read again whenever that file was
 * replaced, so a test changes the machine under a running program. One directive a line, fields
 * parted by one blank; a line that cannot be understood ends the process, since a test that meant
 * something else would prove nothing.
 *
 *   driver 580.105.08
 *   nvml 13.580.105.08
 *   session N                 sessions opened under another N answer 999 until they are opened again
 *   gpu KEY=VALUE ... name=THE REST OF THE LINE
 *       uuid minor bus total used reserved utilization power limit temperature clock memory_clock throttle
 *       performance fan ecc corrected uncorrected mig instances receive send generation lanes
 *       (bytes, percent, milliwatts, degrees, MHz, bits, KB/s); used is without what processes add
 *   link GPU GPU LEVEL [nvlink]     how two cards are joined, as NVML's topology level; else 50
 *   process GPU compute|graphics PID BYTES|na [live|extra]
 *       live:  listed, and its bytes added to used, only while PID lives in this PID namespace
 *       extra: its bytes are added to used, always
 *   match GPU BYTES env=TEXT... argv=TEXT
 *       every live process whose environment holds each TEXT and whose command line holds the argv
 *       TEXT, but not a child of one that matches (a forked data worker); counted like a live one
 *   error NAME|* [gpu=N] CODE
 *   sleep NAME|* [gpu=N] MILLISECONDS      ends early when the directive is taken away
 *   crash NAME
 *   print TEXT            goes to standard output at every nvmlInit, as toolkits' own stubs do
 *
 * FAKE_NVML_CALLS, where set, names a file that gets one line per call.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int nvmlReturn_t;
typedef unsigned long long u64;
typedef struct { char unused; } *nvmlDevice_t;

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999
};
#define NOT_AVAILABLE (~0ULL)
#define MEMORY_V2 0x02000028u

enum { SLICE_MS = 10, MAX_GPUS = 64, MAX_PROCESSES = 4096, MAX_RULES = 64, MAX_LINKS = 64, MAX_INSTANCES = 8, MAX_MATCHES = 16, MAX_NEEDLES = 8, TEXT = 256 };

struct gpu {
    char uuid[TEXT], bus[TEXT], name[TEXT];
    u64 total, used, reserved, throttle;
    unsigned minor, utilization, power, limit, temperature, clock, memory_clock;
    unsigned performance, fan, ecc, mig, instances, receive, send, generation, lanes;
    u64 corrected, uncorrected;
};
struct link { unsigned one, other, level; int nvlink; };
struct process { unsigned gpu; int graphics; unsigned pid; u64 bytes; int live, extra; };
struct match { unsigned gpu; u64 bytes; char env[MAX_NEEDLES][TEXT]; int envs; char argv[TEXT]; };
struct rule { char name[TEXT]; int gpu, value; };
struct rules { struct rule items[MAX_RULES]; int count; };

static struct {
    char driver[TEXT], nvml[TEXT], print[TEXT];
    unsigned session;
    struct gpu gpus[MAX_GPUS];
    struct process processes[MAX_PROCESSES];
    struct match matches[MAX_MATCHES];
    struct link links[MAX_LINKS];
    struct rules errors, crashes, sleeps;
    int gpu_count, process_count, match_count, link_count;
} state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stat seen;
static int users;         /* open sessions of this process */
static unsigned opened;   /* state.session when the first of them was opened */
static char handles[MAX_GPUS], instances[MAX_GPUS][MAX_INSTANCES];

/* ---- the state file ---------------------------------------------------------------------------- */

static void refuse(const char *line)
{
    fprintf(stderr, "fake_nvml: cannot understand: %s\n", line);
    _exit(96);
}

/* The value after KEY= in the line, up to the next blank; name= takes the rest of the line. */
static int field(const char *line, const char *key, char *value)
{
    size_t length = strlen(key);
    for (const char *at = line; (at = strstr(at, key)) != NULL; at += length) {
        if (at[-1] != ' ' || at[length] != '=')
            continue;
        const char *start = at + length + 1;
        size_t size = strcmp(key, "name") == 0 ? strlen(start) : strcspn(start, " ");
        if (size >= TEXT)
            refuse(line);
        memcpy(value, start, size);
        value[size] = '\0';
        return 1;
    }
    return 0;
}

static u64 number(const char *line, const char *key)
{
    char value[TEXT], *end;
    if (!field(line, key, value))
        refuse(line);
    u64 result = strtoull(value, &end, 0);
    if (*end != '\0' || end == value)
        refuse(line);
    return result;
}

static void read_gpu(const char *line)
{
    if (state.gpu_count == MAX_GPUS)
        refuse(line);
    struct gpu *gpu = &state.gpus[state.gpu_count++];
    if (!field(line, "uuid", gpu->uuid) || !field(line, "bus", gpu->bus) || !field(line, "name", gpu->name))
        refuse(line);
    gpu->minor = number(line, "minor");
    gpu->total = number(line, "total");
    gpu->used = number(line, "used");
    gpu->reserved = number(line, "reserved");
    gpu->utilization = number(line, "utilization");
    gpu->power = number(line, "power");
    gpu->limit = number(line, "limit");
    gpu->temperature = number(line, "temperature");
    gpu->clock = number(line, "clock");
    gpu->memory_clock = number(line, "memory_clock");
    gpu->throttle = number(line, "throttle");
    gpu->performance = number(line, "performance");
    gpu->fan = number(line, "fan");
    gpu->ecc = number(line, "ecc");
    gpu->corrected = number(line, "corrected");
    gpu->uncorrected = number(line, "uncorrected");
    gpu->mig = number(line, "mig");
    gpu->instances = number(line, "instances");
    gpu->receive = number(line, "receive");
    gpu->send = number(line, "send");
    gpu->generation = number(line, "generation");
    gpu->lanes = number(line, "lanes");
}

static void read_link(const char *line)
{
    struct link link = {0};
    char mark[TEXT] = "";
    if (state.link_count == MAX_LINKS ||
        sscanf(line, "link %u %u %u %255s", &link.one, &link.other, &link.level, mark) < 3)
        refuse(line);
    link.nvlink = strcmp(mark, "nvlink") == 0;
    state.links[state.link_count++] = link;
}

static void read_process(const char *line)
{
    struct process process = {0};
    char list[TEXT], bytes[TEXT], mark[TEXT] = "";
    if (state.process_count == MAX_PROCESSES ||
        sscanf(line, "process %u %255s %u %255s %255s", &process.gpu, list, &process.pid, bytes, mark) < 4)
        refuse(line);
    process.graphics = strcmp(list, "graphics") == 0;
    process.bytes = strcmp(bytes, "na") == 0 ? NOT_AVAILABLE : strtoull(bytes, NULL, 0);
    process.live = strcmp(mark, "live") == 0;
    process.extra = strcmp(mark, "extra") == 0;
    state.processes[state.process_count++] = process;
}

static void read_match(const char *line)
{
    struct match match = {0};
    if (state.match_count == MAX_MATCHES || sscanf(line, "match %u %llu", &match.gpu, &match.bytes) != 2 ||
        !field(line, "argv", match.argv))
        refuse(line);
    for (const char *at = line; (at = strstr(at, " env=")) != NULL; at++)
        if (match.envs == MAX_NEEDLES || !field(at, "env", match.env[match.envs++]))
            refuse(line);
    state.matches[state.match_count++] = match;
}

static void read_rule(const char *line, struct rules *rules)
{
    struct rule rule = {.gpu = -1};
    if (rules->count == MAX_RULES ||
        (sscanf(line, "%*s %255s gpu=%d %d", rule.name, &rule.gpu, &rule.value) != 3 &&
         sscanf(line, "%*s %255s %d", rule.name, &rule.value) < 1))
        refuse(line);
    rules->items[rules->count++] = rule;
}

static void read_line(const char *line)
{
    char word[TEXT] = "";
    sscanf(line, "%255s", word);
    if (strcmp(word, "driver") == 0)
        sscanf(line, "driver %255s", state.driver);
    else if (strcmp(word, "nvml") == 0)
        sscanf(line, "nvml %255s", state.nvml);
    else if (strcmp(word, "print") == 0)
        sscanf(line, "print %255s", state.print);
    else if (strcmp(word, "session") == 0)
        sscanf(line, "session %u", &state.session);
    else if (strcmp(word, "gpu") == 0)
        read_gpu(line);
    else if (strcmp(word, "process") == 0)
        read_process(line);
    else if (strcmp(word, "link") == 0)
        read_link(line);
    else if (strcmp(word, "match") == 0)
        read_match(line);
    else if (strcmp(word, "error") == 0)
        read_rule(line, &state.errors);
    else if (strcmp(word, "crash") == 0)
        read_rule(line, &state.crashes);
    else if (strcmp(word, "sleep") == 0)
        read_rule(line, &state.sleeps);
    else
        refuse(line);
}

static void refresh(void)
{
    const char *path = getenv("FAKE_NVML_STATE");
    struct stat now;
    char line[8192];
    if (path == NULL || stat(path, &now) != 0)
        refuse("FAKE_NVML_STATE names no file");
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim) == 0)
        return;
    seen = now;
    memset(&state, 0, sizeof state);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        refuse("FAKE_NVML_STATE cannot be opened");
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0')
            read_line(line);
    }
    fclose(file);
}

/* ---- live processes ---------------------------------------------------------------------------- */

static size_t read_proc(unsigned pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t filled = 0;
    ssize_t got;
    if (fd < 0)
        return 0;
    while (filled < size - 1 && (got = read(fd, text + filled, size - 1 - filled)) > 0)
        filled += (size_t)got;
    close(fd);
    text[filled] = '\0';
    return filled;
}

/* A zombie has let go of its device memory, so it does not count. Fills in the parent's PID. */
static int alive(unsigned pid, unsigned *parent)
{
    char text[1024], letter;
    char *end = read_proc(pid, "stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && sscanf(end + 1, " %c %u", &letter, parent) == 2 && letter != 'Z' && letter != 'X';
}

static int holds(unsigned pid, const char *name, const char *needle)
{
    static char text[1 << 17];
    size_t length = read_proc(pid, name, text, sizeof text);
    for (size_t at = 0; at < length; at++) /* arguments are found across their borders */
        if (text[at] == '\0' && strcmp(name, "cmdline") == 0)
            text[at] = ' ';
    return length > 0 && memmem(text, length, needle, strlen(needle)) != NULL;
}

static int matches(const struct match *match, unsigned pid)
{
    for (int at = 0; at < match->envs; at++)
        if (!holds(pid, "environ", match->env[at]))
            return 0;
    return holds(pid, "cmdline", match->argv);
}

struct entry { unsigned pid; u64 bytes; };

static int matching(const struct match *match, struct entry *entries, int room)
{
    int count = 0;
    unsigned parent, ignored;
    DIR *folder = opendir("/proc");
    for (struct dirent *item; folder != NULL && (item = readdir(folder)) != NULL;) {
        unsigned pid = isdigit((unsigned char)item->d_name[0]) ? (unsigned)atoi(item->d_name) : 0;
        if (count == room || pid == 0 || !alive(pid, &parent) || !matches(match, pid))
            continue;
        if (parent != 0 && alive(parent, &ignored) && matches(match, parent))
            continue;
        entries[count++] = (struct entry){pid, match->bytes};
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* The processes of one list of one card; *added gets the bytes that they add to its used memory. */
static int list(unsigned gpu, int graphics, struct entry *entries, u64 *added)
{
    int count = 0;
    unsigned parent;
    *added = 0;
    for (int at = 0; at < state.process_count; at++) {
        const struct process *process = &state.processes[at];
        if (process->gpu != gpu || process->graphics != graphics ||
            (process->live && !alive(process->pid, &parent)))
            continue;
        entries[count++] = (struct entry){process->pid, process->bytes};
        if ((process->live || process->extra) && process->bytes != NOT_AVAILABLE)
            *added += process->bytes;
    }
    for (int at = 0; !graphics && at < state.match_count; at++) {
        const struct match *match = &state.matches[at];
        if (match->gpu != gpu)
            continue;
        int found = matching(match, entries + count, MAX_PROCESSES - count);
        *added += (u64)found * match->bytes;
        count += found;
    }
    return count;
}

static struct entry entries[MAX_PROCESSES];

static u64 used(unsigned gpu)
{
    u64 compute, graphics;
    list(gpu, 0, entries, &compute);
    list(gpu, 1, entries, &graphics);
    return state.gpus[gpu].used + compute + graphics;
}

/* ---- every call passes here first -------------------------------------------------------------- */

static const struct rule *applies(const struct rules *rules, const char *name, int gpu)
{
    for (int at = 0; at < rules->count; at++) {
        const struct rule *rule = &rules->items[at];
        if ((strcmp(rule->name, name) == 0 || strcmp(rule->name, "*") == 0) &&
            (rule->gpu < 0 || rule->gpu == gpu))
            return rule;
    }
    return NULL;
}

static void count_call(const char *name)
{
    const char *path = getenv("FAKE_NVML_CALLS");
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dprintf(fd, "%s\n", name);
        close(fd);
    }
}

static nvmlReturn_t enter(const char *name, int gpu, int needs_session)
{
    const struct timespec slice = {0, SLICE_MS * 1000000L};
    const struct rule *rule;
    refresh();
    count_call(name);
    for (int slept = 0; (rule = applies(&state.sleeps, name, gpu)) != NULL && slept < rule->value; slept += SLICE_MS) {
        nanosleep(&slice, NULL);
        refresh();
    }
    if (applies(&state.crashes, name, gpu) != NULL)
        abort();
    rule = applies(&state.errors, name, gpu);
    if (rule != NULL)
        return rule->value;
    if (needs_session && users == 0)
        return UNINITIALIZED;
    if (needs_session && opened != state.session)
        return UNKNOWN;
    return SUCCESS;
}

/* The card of a handle; the lock is held from here until leave(). */
static int gpu_of(nvmlDevice_t device)
{
    pthread_mutex_lock(&lock);
    return (int)((char *)device - handles);
}

static nvmlReturn_t leave(nvmlReturn_t result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

static nvmlReturn_t copy(const char *from, char *to, unsigned size)
{
    if (strlen(from) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(to, from);
    return SUCCESS;
}

/* BODY runs with `card` set to the card, and sets `result`. */
#define DEVICE_CALL(NAME, PARAMETERS, BODY)                                       \
    nvmlReturn_t NAME PARAMETERS                                                  \
    {                                                                             \
        int index = gpu_of(device);                                               \
        nvmlReturn_t result = enter(#NAME, index, 1);                             \
        if (result == SUCCESS && (index < 0 || index >= state.gpu_count))         \
            result = INVALID_ARGUMENT;                                            \
        if (result == SUCCESS) {                                                  \
            const struct gpu *card = &state.gpus[index];                          \
            (void)card;                                                           \
            BODY                                                                  \
        }                                                                         \
        return leave(result);                                                     \
    }

/* ---- the library ------------------------------------------------------------------------------- */

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter("nvmlInitWithFlags", -1, 0);
    dprintf(1, "%s", state.print);
    if (result == SUCCESS && users++ == 0)
        opened = state.session;
    return leave(result);
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter("nvmlShutdown", -1, 0);
    if (result == SUCCESS && users == 0)
        result = UNINITIALIZED;
    if (result == SUCCESS)
        users--;
    return leave(result);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    static char text[64];
    snprintf(text, sizeof text, "Error %d of the stand-in", result);
    return text;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter("nvmlSystemGetDriverVersion", -1, 1);
    return leave(result == SUCCESS ? copy(state.driver, text, size) : result);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, unsigned size)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter("nvmlSystemGetNVMLVersion", -1, 0);
    return leave(result == SUCCESS ? copy(state.nvml, text, size) : result);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter("nvmlDeviceGetCount_v2", -1, 1);
    *count = (unsigned)state.gpu_count;
    return leave(result);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter("nvmlDeviceGetHandleByIndex_v2", (int)index, 1);
    if (result == SUCCESS && index >= (unsigned)state.gpu_count)
        result = INVALID_ARGUMENT;
    if (result == SUCCESS)
        *device = (nvmlDevice_t)&handles[index];
    return leave(result);
}

DEVICE_CALL(nvmlDeviceGetName, (nvmlDevice_t device, char *text, unsigned size),
            { result = copy(card->name, text, size); })
/* A handle that is no card's may be an instance's. */
static int instance_uuid(nvmlDevice_t device, char *text)
{
    long at = (char *)device - &instances[0][0];
    if (at < 0 || at >= MAX_GPUS * MAX_INSTANCES)
        return 0;
    sprintf(text, "MIG-%08lx-0000-0000-0000-%012lx", at / MAX_INSTANCES, at % MAX_INSTANCES);
    return 1;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned size)
{
    int index = gpu_of(device);
    if (instance_uuid(device, text))
        return leave(SUCCESS);
    nvmlReturn_t result = enter("nvmlDeviceGetUUID", index, 1);
    if (result == SUCCESS && (index < 0 || index >= state.gpu_count))
        result = INVALID_ARGUMENT;
    return leave(result == SUCCESS ? copy(state.gpus[index].uuid, text, size) : result);
}
DEVICE_CALL(nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned *minor), { *minor = card->minor; })
DEVICE_CALL(nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned *number), { *number = (unsigned)index; })

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};
DEVICE_CALL(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, struct pci *pci), {
    memset(pci, 0, sizeof *pci);
    sscanf(card->bus, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->legacy, sizeof pci->legacy, "%.4s%.11s", card->bus + 4, card->bus + 8);
    result = copy(card->bus, pci->text, sizeof pci->text);
})

struct memory { u64 total, free, used; };
DEVICE_CALL(nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, struct memory *memory), {
    memory->total = card->total;
    memory->used = card->reserved + used((unsigned)index); /* v1 counts what the driver reserves */
    memory->free = memory->total - memory->used;
})

struct memory_v2 { unsigned version; u64 total, reserved, free, used; };
DEVICE_CALL(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, struct memory_v2 *memory), {
    if (memory->version != MEMORY_V2)
        result = ARGUMENT_VERSION_MISMATCH;
    memory->total = card->total;
    memory->reserved = card->reserved;
    memory->used = used((unsigned)index);
    memory->free = memory->total - memory->reserved - memory->used;
})

struct utilization { unsigned gpu, memory; };
DEVICE_CALL(nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, struct utilization *rates), {
    rates->gpu = card->utilization;
    rates->memory = card->utilization / 2;
})

DEVICE_CALL(nvmlDeviceGetTemperature, (nvmlDevice_t device, int sensor, unsigned *degrees), {
    if (sensor != 0)
        result = INVALID_ARGUMENT;
    *degrees = card->temperature;
})
struct temperature { unsigned version; int sensor; int degrees; };
DEVICE_CALL(nvmlDeviceGetTemperatureV, (nvmlDevice_t device, struct temperature *temperature),
            { temperature->degrees = (int)card->temperature; })

DEVICE_CALL(nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned *power), { *power = card->power; })
DEVICE_CALL(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned *limit), { *limit = card->limit; })
DEVICE_CALL(nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t device, unsigned *limit), { *limit = card->limit; })
DEVICE_CALL(nvmlDeviceGetClockInfo, (nvmlDevice_t device, unsigned type, unsigned *clock),
            { *clock = type == 2 ? card->memory_clock : card->clock; })
DEVICE_CALL(nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice_t device, u64 *bits), { *bits = card->throttle; })
DEVICE_CALL(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t device, u64 *bits),
            { *bits = card->throttle; })

DEVICE_CALL(nvmlDeviceGetPerformanceState, (nvmlDevice_t device, unsigned *number),
            { *number = card->performance; })
DEVICE_CALL(nvmlDeviceGetFanSpeed, (nvmlDevice_t device, unsigned *percent), { *percent = card->fan; })
DEVICE_CALL(nvmlDeviceGetEccMode, (nvmlDevice_t device, unsigned *current, unsigned *pending),
            { *current = *pending = card->ecc; })
DEVICE_CALL(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t device, unsigned kind, unsigned counter, u64 *count), {
    if (counter != 0)
        result = INVALID_ARGUMENT;
    *count = kind == 0 ? card->corrected : card->uncorrected;
})
DEVICE_CALL(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned *current, unsigned *pending),
            { *current = *pending = card->mig; })
DEVICE_CALL(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t device, unsigned *count), { *count = MAX_INSTANCES; })
DEVICE_CALL(nvmlDeviceGetMigDeviceHandleByIndex,
            (nvmlDevice_t device, unsigned number, nvmlDevice_t *instance), {
    if (number % 2 != 0 || number / 2 >= card->instances) /* instances need not be numbered without gaps */
        result = NOT_FOUND;
    else
        *instance = (nvmlDevice_t)&instances[index][number / 2];
})
DEVICE_CALL(nvmlDeviceGetPcieThroughput, (nvmlDevice_t device, unsigned counter, unsigned *rate),
            { *rate = counter == 1 ? card->receive : card->send; })
DEVICE_CALL(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t device, unsigned *number),
            { *number = card->generation; })
DEVICE_CALL(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t device, unsigned *lanes), { *lanes = card->lanes; })
DEVICE_CALL(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t device, unsigned *lanes), { *lanes = 16; })

static struct link joined(int one, nvmlDevice_t peer)
{
    int other = (int)((char *)peer - handles);
    for (int at = 0; at < state.link_count; at++) {
        struct link link = state.links[at];
        if (((int)link.one == one && (int)link.other == other) || ((int)link.one == other && (int)link.other == one))
            return link;
    }
    return (struct link){0, 0, 50, 0};
}
DEVICE_CALL(nvmlDeviceGetTopologyCommonAncestor, (nvmlDevice_t device, nvmlDevice_t peer, unsigned *level),
            { *level = joined(index, peer).level; })
DEVICE_CALL(nvmlDeviceGetP2PStatus, (nvmlDevice_t device, nvmlDevice_t peer, unsigned caps, unsigned *status),
            { *status = caps == 2 && joined(index, peer).nvlink ? 0 : 5; })

struct process_info { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; };

static nvmlReturn_t fill(unsigned gpu, int graphics, unsigned *count, struct process_info *infos)
{
    u64 added;
    unsigned room = *count;
    int found = list(gpu, graphics, entries, &added);
    *count = (unsigned)found;
    if ((unsigned)found > room || (infos == NULL && found > 0))
        return INSUFFICIENT_SIZE;
    for (int at = 0; at < found; at++)
        infos[at] = (struct process_info){entries[at].pid, entries[at].bytes, ~0u, ~0u};
    return SUCCESS;
}

#define PROCESS_CALL(NAME, GRAPHICS)                                                              \
    DEVICE_CALL(NAME, (nvmlDevice_t device, unsigned *count, struct process_info *infos),          \
                { result = fill((unsigned)index, GRAPHICS, count, infos); })
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v2, 0)
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v3, 0)
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, 1)
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
