import type { z } from 'zod'
import type { Event as DeckEvent } from '../api/shapes.ts'
import type { SCHEMA, STRATEGY } from '../config/options.ts'

/**
 * What a deck takes and tells, by the schemas of the options and of the API. In the package these types stand in full,
 * see build/types.ts.
 */
export type DeckOptions = z.input<typeof SCHEMA>
export type Strategy = z.infer<typeof STRATEGY>
export type { Status, Worker } from '../api/cluster.ts'
export type { Rollout } from '../rollouts/api.ts'
export type { RolloutStep, ShownRelease as Release } from '../api/shapes.ts'
export type { DeckEvent }
export type EventType = DeckEvent['type']
