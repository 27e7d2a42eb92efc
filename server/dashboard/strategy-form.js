import { z } from 'zod'
import { parseBody } from '../api/input.js'
import { COMMIT_ORDER, ROLLOUT_ORDER } from '../config/orders.js'

/** @typedef {import('../lifecycle/rollout/strategy.js').StrategyWish} StrategyWish */

const ORDER = z.strictObject({ strategy: ROLLOUT_ORDER.strategy })
const COMMIT = z.strictObject({ git: COMMIT_ORDER.shape.git })
const COUNT = /^\d{1,9}$/

/**
 * How a deploy is to go, as the fields of its form say. What is empty is as configured.
 * @param {Record<string, unknown>} fields `surge`, `canary` (workers), `canaryMs`, `onFailure`; texts
 * @returns {{ strategy?: StrategyWish }}
 * @throws {import('../errors.js').DeckError} invalid-body
 */
export function strategyOfForm ({ surge, canary, canaryMs, onFailure }) {
  const trial = withoutEmpty({ workers: valueOf(canary), durationMs: valueOf(canaryMs) })
  const strategy = withoutEmpty({ surge: valueOf(surge), canary: trial, onFailure: valueOf(onFailure) })
  return strategy ? /** @type {{ strategy: StrategyWish }} */ (parseBody(ORDER, { strategy })) : {}
}

/**
 * The commit that a form names, if any.
 * @param {Record<string, unknown>} fields `git`, `guess`; texts
 * @returns {{ git?: string, isGuessAccepted?: boolean }} empty: the code on the disk
 * @throws {import('../errors.js').DeckError} invalid-body
 */
export function commitOfForm ({ git, guess }) {
  const name = valueOf(git)
  if (name === undefined) return {}
  return { ...parseBody(COMMIT, { git: String(name) }), ...(guess === 'true' && { isGuessAccepted: true }) }
}

/** @param {unknown} field @returns {unknown} a number where it is one; undefined: it is empty */
function valueOf (field) {
  const text = typeof field === 'string' ? field.trim() : field
  if (text === '') return undefined
  return typeof text === 'string' && COUNT.test(text) ? Number(text) : text
}

/** @param {Record<string, unknown>} fields @returns {Record<string, unknown> | undefined} undefined: all are empty */
function withoutEmpty (fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}
