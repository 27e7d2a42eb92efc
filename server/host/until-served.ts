import { setTimeout as wait } from 'node:timers/promises'
import { placeText } from '../system/place-text.ts'
import type { App } from '../app/app.ts'
import type { DeckEvent } from '../events/stream.ts'

/** A ready worker may open a second port a little later. */
const SECOND_PORT_MS = 5000
/** A program of several processes, such as gunicorn, listens before these find out that they cannot serve. */
const FAILS_WITHIN_MS = 2000
const POLL_MS = 50

/**
 * Waits until no worker of another master is needed any more: each slot has one of this master that serves. One that
 * ends before is enough to let it fail, as in an upgrade: those of the other master are still there.
 * @returns why it comes to nothing; null: it serves
 */
export function untilServed (
  { events, supervisor, restored }: Pick<App, 'events' | 'supervisor' | 'restored'>
): Promise<string | null> {
  const earlier = new Set(restored.left.map(({ id }) => id))
  return new Promise((resolve) => {
    const leave = events.subscribe((event) => {
      const { worker, message } = event
      if (isFailure(event) && worker != null && !earlier.has(worker)) end(String(message ?? `worker ${worker} ended`))
      else endIfServed()
    })
    endIfServed()

    function endIfServed () {
      if (isServed(supervisor.snapshot())) end(null)
    }

    function end (reason: string | null) {
      leave()
      resolve(reason)
    }
  })
}

/**
 * Waits until the workers of an app serve, on all addresses of the program whose place they take.
 * @returns why it comes to nothing; null: they do
 */
export async function untilReplaced (app: Pick<App, 'events' | 'supervisor' | 'restored'>): Promise<string | null> {
  const missing = await untilServed(app)
  if (missing !== null) return missing
  const { events, supervisor } = app
  const lacking = () => supervisor.unclaimed().filter(({ isCertain }) => isCertain)
  const isOther = supervisor.snapshot().workers.some(({ runtime }) => runtime === 'other')
  const ends: string[] = []
  const leave = events.subscribe((event) => {
    if (isFailure(event)) ends.push(String(event.message))
  })
  for (let passed = 0;
    ends.length === 0 && passed < (lacking().length > 0 ? SECOND_PORT_MS : isOther ? FAILS_WITHIN_MS : 0);
    passed += POLL_MS) await wait(POLL_MS)
  leave()
  if (ends.length > 0) return ends[0]
  const places = lacking().map(placeText)
  if (places.length > 0)
    return `the new workers are ready, but do not listen on ${places.join(', ')}, where the program does`
  supervisor.closeUnclaimed()
  return null
}

/**
 * Waits until it looks as if no worker would ever get ready: before any was, one crash-loops, or was not ready in time.
 * @returns why
 */
export function untilDoubted ({ events }: Pick<App, 'events'>): Promise<string> {
  let lastEnd = ''
  return new Promise((resolve) => {
    const leave = events.subscribe(({ type, cause, actor, message }) => {
      if (type === 'worker.exited') lastEnd = String(message)
      const isLate = type === 'worker.draining' && cause === 'boot-failure' && actor === 'system'
      const isLooping = type === 'worker.crash-looping'
      if (isLate || isLooping) resolve(isLate ? String(message) : lastEnd)
      if (isLate || isLooping || type === 'worker.ready') leave()
    })
  })
}

/** A program may have done its work, as that of a job. */
function isFailure ({ type, cause, code }: DeckEvent) {
  return type === 'worker.exited' && !(cause === 'finished' && code === 0)
}

function isServed ({ desiredWorkers, workers }: ReturnType<App['supervisor']['snapshot']>) {
  const served = workers.filter(({ state, orphan }) => !orphan && (state === 'ready' || state === 'finished'))
  return new Set(served.map(({ slot }) => slot)).size === desiredWorkers
}
