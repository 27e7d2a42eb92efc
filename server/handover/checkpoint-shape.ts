import { z } from 'zod'
import { VERSION } from './checkpoint.ts'

const PID = z.int().positive()
/** The fields that a master needs to begin; others stay as they are. */
export const CHECKPOINT = z.looseObject({ version: z.literal(VERSION), master: z.looseObject({ pid: PID }),
  software: z.looseObject({ version: z.string(), nodeVersion: z.string() }).nullish(), nextWorker: z.int().positive(),
  firstOfNext: z.int().positive().nullish(), nextRelease: z.int().positive().default(1),
  lastEvent: z.int().nonnegative().default(0), nextRollout: z.int().positive().default(1),
  bootCost: z.looseObject({ cpuMs: z.number(), activeMs: z.number() }).nullish(),
  guard: z.looseObject({ release: z.string(), from: z.string(), rollout: z.int(), isTripped: z.boolean(),
    endsAt: z.iso.datetime() }).nullish(), sockets: z.array(z.string()),
  addresses: z.record(z.string().regex(/^\d+$/), z.array(z.looseObject({ url: z.string(), isFixed: z.boolean() })))
    .default({}), since: z.int().positive(),
  hooks: z.array(z.looseObject({ name: z.string(), pid: PID, startTime: z.string().nullable() })).default([]),
  jobs: z.looseObject({
    runs: z.array(
      z.looseObject({ run: PID, job: z.string().nullable(), name: z.string(), pid: PID,
        startTime: z.string().nullable(), timeoutMs: PID, hasTerminal: z.boolean() })
    ),
    due: z.record(z.string(), z.looseObject({ cron: z.string(), at: z.iso.datetime() }))
  }).default({ runs: [], due: {} }),
  workers: z.array(
    z.looseObject({ id: z.int().positive(), slot: z.int().positive(),
      state: z.enum(['starting', 'ready', 'unresponsive', 'draining', 'stopping']), startedAt: z.iso.datetime(),
      identity: z.looseObject({ pid: PID, startTime: z.string().nullable(), crashFile: z.string(),
        orderFile: z.string() }) })
  ) })
