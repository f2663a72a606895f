{{- define "bounds" -}}
## What is refused, and by whose rule

The API server refuses a spec that memcached wouldn't start with, and says which field to change. The rules hold for
memcached 1.5.4 to 1.6.45. Most are memcached's own; some bounds are ours, drawn where more makes no sense or costs
memory that no limit accounts for.

| field | rule | whose |
|---|---|---|
| `memory` | whole MiB | memcached's: `-m` is a number of MiB |
| | 8Mi to 1Ti | ours |
| `maxConnections` | 1 to 65536 | memcached's, that it isn't 0; ours, the upper bound |
| | at least 16 + 8 × `threads` | ours: memcached limits its open files to `-c`, and exits if it can't open its own, which were up to 5 for each thread and 9 more when measured with 1.6.18 and 1.6.45 |
| `threads` | 1 to 64 | memcached's: it warns above 64 |
| `maxItemSize` | a multiple of 512Ki, not 0 | memcached's: `-I` must be divisible by slab_chunk_max, which is 512Ki |
| | at most 1Gi | memcached's |
| | at most half of `memory` | memcached's |
| `resources.limits.memory` | at least `memory` + the larger of 64Mi and `memory`/4 + 16Ki for each of `maxConnections` above 1024 | ours: with less, the kernel may kill memcached when the cache is full |
| quantities | no exponents, 32 characters | ours: some take an API server more than half a minute to read |
| `minReadySeconds` | 0 to 3600 | ours |
| `podLabels`, `podAnnotations` | not those that the operator or Kubernetes sets, nor any of `cache.example.com` | ours |
| lists and maps | 64 elements of `nodeSelector`, `tolerations`, `podLabels`, `podAnnotations` and each list of terms in `affinity`; 32 of `extraArgs`; 16 of `imagePullSecrets` and `topologySpreadConstraints`; 8 of `limits` and `requests` | ours |

Whatever else the API server finds wrong with a pod, such as a topology key that is missing in `affinity`, shows in the
condition `Degraded` with the reason `ApplyRefused`, and the pods that run are left as they are.

### Flags in extraArgs

| flag | value | whose bound |
|---|---|---|
| `-M` | none: return an error when memory is full, instead of evicting | |
| `-C` | none: no compare-and-swap, which saves 8 bytes an item | |
| `-F` | none: no `flush_all` | |
| `-X` | none: no dumps of keys | |
| `-W` | none: no `watch`. Since memcached 1.5.21; older ones exit | |
| `-b` | 1 to 99999: queue of connections that wait to be accepted; the kernel's somaxconn may be lower | ours |
| `-R` | 1 to 99999: requests of one connection that are served in a row | memcached's, that it isn't 0; ours, the upper bound |
| `-n` | 1 to 9999: bytes that the smallest items have for key, value and flags | memcached's, that it isn't 0; ours, the upper bound |
| `-f` | 1.05 to 4.99: factor from one size of chunks to the next | memcached's, that it is above 1; ours, the bounds |
| `-B` | `ascii` or `auto` | ours: memcached has deprecated the binary protocol |
| `-o idle_timeout=` | 0 to 99999: seconds until an idle connection is closed, 0 for never | ours |
| `-o temporary_ttl=` | 1 to 99999: seconds; items that live shorter are kept apart | ours |
| `-o lru_crawler_sleep=` | 0 to 999999 microseconds | memcached's, 1000000 |
| `-o slab_automove=` | 0, 1 or 2 | memcached's |
| `-o hot_lru_pct=`, `-o warm_lru_pct=` | 1 to 40 each | memcached's, that both are at most 80 together; ours, that each has half of it |
| `-o hash_algorithm=` | `jenkins` or `murmur3` | ours: older memcacheds don't know others |

Every other flag is refused:

| flag | why |
|---|---|
| `-m`, `-c`, `-t`, `-I` | fields of `spec` set them |
| `-p`, `-l`, `-U`, `-s`, `-a`, `-v` | the operator sets on what memcached listens, and what it logs. UDP invites amplification attacks; `-vv` logs what clients send |
| `-h`, `-i`, `-V`, `-d`, `-P` | memcached exits, or goes to the background, and the container ends |
| `-u`, `-r`, `-k`, `-L` | the container is not root's, writes no core files, and may neither lock memory nor use large pages |
| `-e`, `-S`, `-Y`, `-Z`, `-N` | files and devices that the container doesn't have |
| `-A`, `-D` | every client could stop the cache, or fill memory that no limit accounts for |
| long forms, such as `--port` | memcached takes them abbreviated too: the short forms say the same |
| flag and value in one item, such as `-b5` | one form is enough |
| `-o hashpower=`, `-o track_sizes`, `-o worker_logbuf_size=` and other sizes | memory that no limit accounts for |
| `-o slab_chunk_max=`, `-o slab_sizes=`, `-o no_chunked_items`, `-o no_modern` | they change which `maxItemSize` is right |
| `-o ssl_…`, `-o ext_…`, `-o proxy_…` | files that the container doesn't have |
| `-o tail_repair_time=`, `-o no_hashexpand` | memcached's own documentation calls them dangerous |
| any other option | not known to memcached 1.5.4, or of no use that is known to us |

Images of memcached before 1.5.4 are not checked for: some exit at options that are listed here, which shows as
`CrashLooping`.

### Open files

memcached sets its limit of open files to `maxConnections`, and what it opens for itself comes out of that: of 1024
connections, about 1000 are left for clients with 4 threads, and each thread more costs about 5.

It exits if it may not set that limit: the container runtime's hard limit must be at least `maxConnections`. It is 524288
or more with most runtimes; `kubectl exec POD -- sh -c 'ulimit -Hn'` shows it. Where it is lower, the condition `Degraded`
says `CrashLooping`, and the pod's log "failed to set rlimit for open files".
{{ end -}}
