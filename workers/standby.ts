import { setTimeout } from 'node:timers'
import { fileURLToPath } from 'node:url'
import { slotVariables } from './protocol.ts'
import type { Channel } from './channel.ts'

/** As a stack names it, with `file://` before it or without. */
const OWN_FILE = fileURLToPath(import.meta.url)
/** An app that has begun to listen counts as loading for this long, as it may do other work meanwhile. */
const LOADING_MS = 1000

/**
 * A worker without a slot: its app loads, and waits where it listens. It gets the variables of its slot when it gets
 * the slot; an app that asks for them before would take itself for another one than it will be, so the master is told.
 * `names`: of what tells the app its slot.
 */
export function standBy (channel: Pick<Channel, 'send' | 'on'>, names: string[]) {
  const { env } = process
  const waiting: (() => void)[] = []
  let isWaiting = true
  let isWatching = true
  process.env = watchedEnv(env, names, (name) => {
    if (!isWatching) return
    isWatching = false
    channel.send({ type: 'slot-read', name, place: placeOf(new Error()) })
  })
  channel.on('promote', ({ slot }) => {
    endWatch()
    Object.assign(env, slotVariables(slot, names))
    isWaiting = false
    for (const then of waiting) then()
  })

  return {
    isWaiting: () => isWaiting,

    /** `then`: what is for a worker that has a slot */
    whenPromoted (then: () => void) {
      waiting.push(then)
    },

    /** The app begins to listen. */
    listens () {
      setTimeout(endWatch, LOADING_MS).unref()
    }
  }

  function endWatch () {
    isWatching = false
    process.env = env
  }
}

function watchedEnv (env: NodeJS.ProcessEnv, names: readonly string[],
  onRead: (name: string) => void): NodeJS.ProcessEnv
{
  const noteRead = (name: string | symbol) => {
    if (names.some((each) => each === name)) onRead(String(name))
  }
  return new Proxy(env, {
    get (_, name) {
      noteRead(name)
      return Reflect.get(env, name)
    },
    has (_, name) {
      noteRead(name)
      return Reflect.has(env, name)
    },
    // Node would refuse another receiver.
    set: (_, name, value) => Reflect.set(env, name, value)
  })
}

/** @returns the line of the app, or of a package of it */
function placeOf ({ stack = '' }: Error): string | null {
  const line = stack.split('\n').slice(1).find((each) =>
    !each.includes(OWN_FILE) && !/\bnode:|\bReflect\.|Object\.(get|has)\b/.test(each)
  )
  return line?.trim().replace(/^at /, '').slice(0, 500) ?? null
}
