import { z } from 'zod'
import { APP_ORDER } from '../config/orders.ts'
import type { Runs } from './runs.ts'

const OBJECT = z.looseObject({})
/** The fields that a master needs to begin; others stay as they are. */
export const RUNS: z.ZodType<Runs> = z.looseObject({ order: APP_ORDER.nullable(),
  config: z.looseObject({ values: z.looseObject({ entry: z.string(), cwd: z.string(), workers: z.int().positive() }),
    origins: z.array(z.tuple([z.string(), OBJECT])) }), variables: z.record(z.string(), z.string().nullable()),
  release: z.looseObject({ id: z.string(), entry: z.string(), path: z.string(), createdAt: z.string() }),
  workers: z.int().positive(),
  changes: z.array(z.looseObject({ name: z.string(), value: z.unknown(), configured: z.unknown() })),
  finished: z.record(z.string().regex(/^\d+$/),
    z.looseObject({ at: z.iso.datetime(), worker: z.int(), release: z.string(), cause: z.string(),
      code: z.int().nullable(), succeeded: z.boolean() })) }) as unknown as z.ZodType<Runs>
