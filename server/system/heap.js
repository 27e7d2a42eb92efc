import v8 from 'node:v8'

/** A start, a deploy or an open page leaves garbage for a while. */
const REST_MS = 5000
/** From V8 12 on it also puts together what is left, in half-empty pages. */
const WHOLE = /** @type {const} */ ({ type: 'major', execution: 'sync', flavor: 'last-resort' })
const CAN_COMPACT = Number.parseInt(process.versions.v8, 10) >= 12

let isOurs = false
/** @type {NodeJS.Timeout | undefined} */
let timer

/** The process is a master, and no program that has one inside. By itself V8 lets the garbage of a flood fill four times of what is in use. */
export function keepHeapSmall () {
  isOurs = true
  v8.setFlagsFromString('--heap-growing-percent=50')
  tidySoon()
}

/**
 * Gives memory back once the work is over that somebody has begun or ended now: V8 leaves garbage where it is while little is made.
 * Workers notice nothing of it; a master that was started without `--expose-gc` does without.
 */
export function tidySoon () {
  const { gc } = globalThis
  if (!isOurs || !gc) return
  clearTimeout(timer)
  timer = setTimeout(() => { if (CAN_COMPACT) gc(WHOLE); else gc() }, REST_MS).unref()
}
