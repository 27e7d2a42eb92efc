import type { CrashRecord } from '../../db/crashes.ts'

/** A crash as the recorder stores it: a TypeError in a request, with everything that can be known of it. */
export function aCrash (fields: Partial<CrashRecord> = {}): CrashRecord {
  return { at: '2026-01-01T00:00:00.000Z', cause: 'crash', kind: 'exception', code: 1, signal: null, slot: 1, worker: 7,
    pid: 4711, release: 'r1', rollout: null, uptimeMs: 65_000, nodeVersion: 'v20.20.2', errorName: 'TypeError',
    errorMessage: 'total is not a function',
    stack: 'TypeError: total is not a function\n    at sum (/srv/app/src/shop.js:12:34)',
    frames: [aFrame('sum', 'src/shop.js', true), aFrame('Layer.handle', 'node_modules/express/lib/layer.js', false),
      aFrame('emit', 'node:events', false), aFrame('serve', 'src/app.js', true)],
    causes: [{ depth: 1, errorName: 'Error', errorMessage: 'no cart', stack: 'Error: no cart\n    at load' }],
    requests: [{ method: 'POST', path: '/checkout', ageMs: 12 }],
    memory: { rssBytes: 2 ** 26, heapUsedBytes: 2 ** 24, heapTotalBytes: 2 ** 25, externalBytes: 1,
      arrayBuffersBytes: 1 }, stderr: ['first line', 'last words'],
    vitals: [3, 2, 1].map((seconds) => aSample(`2025-12-31T23:59:5${10 - seconds}.000Z`, seconds)), ...fields }
}

function aFrame (name: string, file: string, isInApp: boolean) {
  return { function: name, file, line: 12, column: 34, isInApp }
}

function aSample (at: string, n: number) {
  return { at, rssBytes: n * 2 ** 20, loopDelayMaxMs: n, inFlight: n, cpuPercent: n, requests2xx: n, requests4xx: 1 }
}
