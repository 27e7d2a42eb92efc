import { z } from 'zod'
import { parseBody } from '../api/input.ts'
import { COMMIT_ORDER, ROLLOUT_ORDER } from '../config/orders.ts'
import type { StrategyWish } from '../lifecycle/rollout/strategy.ts'

const ORDER = z.strictObject({ strategy: ROLLOUT_ORDER.strategy })
const COMMIT = z.strictObject({ git: COMMIT_ORDER.shape.git })
const COUNT = /^\d{1,9}$/

/**
 * How a deploy is to go, as the fields of its form say. What is empty is as configured.
 * @param fields `surge`, `canary` (workers), `canaryMs`, `onFailure`; texts
 * @throws {import('../errors.ts').DeckError} invalid-body
 */
export function strategyOfForm (
  { surge, canary, canaryMs, onFailure }: Record<string, unknown>
): { strategy?: StrategyWish } {
  const trial = withoutEmpty({ workers: valueOf(canary), durationMs: valueOf(canaryMs) })
  const strategy = withoutEmpty({ surge: valueOf(surge), canary: trial, onFailure: valueOf(onFailure) })
  return strategy ? parseBody(ORDER, { strategy }) : {}
}

/**
 * The commit that a form names, if any. `fields`: `git`, `guess`; texts.
 * @returns empty: the code on the disk
 * @throws {import('../errors.ts').DeckError} invalid-body
 */
export function commitOfForm ({ git, guess }: Record<string, unknown>): { git?: string, isGuessAccepted?: boolean } {
  const name = valueOf(git)
  if (name === undefined) return {}
  return { ...parseBody(COMMIT, { git: String(name) }), ...(guess === 'true' && { isGuessAccepted: true }) }
}

/** @returns a number where it is one; undefined: it is empty */
function valueOf (field: unknown): unknown {
  const text = typeof field === 'string' ? field.trim() : field
  if (text === '') return undefined
  return typeof text === 'string' && COUNT.test(text) ? Number(text) : text
}

/** Undefined: all are empty */
function withoutEmpty (fields: Record<string, unknown>): Record<string, unknown> | undefined {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}
