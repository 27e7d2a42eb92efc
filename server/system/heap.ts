import v8 from 'node:v8'
import vm from 'node:vm'
import { loadPosix } from './posix.ts'

/** A start, the end of workers or an open page leaves garbage for a while. */
const REST_MS = 5000
/** From V8 12 on it also puts together what is left, in half-empty pages. */
const WHOLE = { type: 'major', execution: 'sync', flavor: 'last-resort' } as const
const CAN_COMPACT = Number.parseInt(process.versions.v8, 10) >= 12

let isOurs = false
let timer: NodeJS.Timeout | undefined

/**
 * The young generation stays as small as it is: keepers and masters make much garbage when they start, which would let
 * it grow for good. What Node loads of its own code after that, it compiles anew.
 */
export function keepYoungSmall () {
  v8.setFlagsFromString('--semi-space-growth-factor=1')
}

/**
 * The process is a keeper or a master, and no program that has one inside. By itself V8 lets the garbage of a flood fill
 * four times of what is in use, and keeps for six collections what it has compiled of code that runs once.
 */
export function keepHeapSmall () {
  isOurs = true
  v8.setFlagsFromString('--heap-growing-percent=50')
  v8.setFlagsFromString('--bytecode-old-age=1')
  tidySoon()
}

/**
 * Gives memory back once the work is over that somebody has begun or ended now: V8 leaves garbage where it is while
 * little is made. Workers notice nothing of it.
 */
export function tidySoon () {
  if (!isOurs) return
  clearTimeout(timer)
  timer = setTimeout(collectGarbage, REST_MS).unref()
}

function collectGarbage () {
  // Only a new context gets the function.
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc')
  v8.setFlagsFromString('--no-expose-gc')
  if (CAN_COMPACT) collect(WHOLE)
  else collect()
  loadPosix()?.trimMemory()
}
