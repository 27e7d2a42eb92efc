/**
 * node:cluster counts ports from its own on, but that of a master is 0: it is for its keeper. So they are counted from
 * here.
 */
const FIRST = 9230
const PORTS = 50_000
/** Node's exit code if its inspector could not listen. */
const IN_USE_EXIT_CODE = 12

/**
 * The ports of workers that are started with `--inspect`: the one that it names, or the next that no other worker has.
 * Their host is left to Node.
 */
export function createInspectPorts () {
  /** by port */
  const workers: Map<number, unknown> = new Map()

  return {
    /** `worker`: what tells it from all others; `options`: of node. Returns 0: any that is free. */
    take (worker: unknown, options: string[]): number {
      const text = options.join(' ')
      const first = namedPort(text) ?? FIRST
      if (first === 0 || !/--(inspect|debug-port)/.test(text)) return first
      const port =
        Array.from({ length: Math.min(PORTS, 65_536 - first) }, (_, index) => first + index).find((each) =>
          !workers.has(each)
        ) ?? first
      workers.set(port, worker)
      return port
    },

    left (worker: unknown, { code }: { code?: number | null }) {
      // Another process uses it, so the next worker tries another port.
      if (code === IN_USE_EXIT_CODE) return
      for (const [port, its] of workers) if (its === worker) workers.delete(port)
    }
  }
}

/** @returns of `--inspect=HOST:PORT` or `--inspect=PORT` */
function namedPort (options: string): number | null {
  const [, port] = /.*--(?:inspect(?:-brk|-wait|-port)?|debug-port)[= ](?:\S*:)?(\d{1,5})(?=\s|$)/s.exec(options) ?? []
  return port === undefined || Number(port) > 65_535 ? null : Number(port)
}
