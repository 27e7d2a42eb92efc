import { runtimeOf, type PoolState, type Worker } from './state.ts'
import type { Transition } from './transition.ts'

/**
 * Where a worker listens: `url` such as `http://localhost:3000`; `isFixed`: by the app's choice and with the other
 * workers, so that a successor can be expected to have it too. `isVacant`: nobody listens there any more.
 * `isOfProcess`: its path has the pid of the process in it, as that of Watt's own API has, so that no successor can
 * have it. `isLate`: its worker was ready before, so successors are waited for, but do not fail without it.
 */
export type Address = { url: string, isFixed: boolean, isVacant?: boolean, isOfProcess?: boolean, isLate?: boolean }

// An app may open listeners without end, as FTP servers do for every transfer.
const MAX_PER_WORKER = 32
/** A worker that is ready in all other respects may take this long to listen at the missing addresses. */
const GRACE_MS = 3000

export function addAddress (transition: Transition, worker: Worker, { url, isFixed }: Address) {
  const known = worker.addresses
  if (known.length >= MAX_PER_WORKER || known.some((each) => each.url === url)) return
  worker.addresses = [...known, { url, isFixed, ...(isNamedAfter(url, worker.pid) && { isOfProcess: true }),
    ...(worker.state === 'ready' && { isLate: true }) }]
  transition.emitForWorker('worker.listening', worker, { message: url })
}

/** `url`: of a server that its app has closed */
export function removeAddress (worker: Worker, url: string) {
  worker.addresses = worker.addresses.filter((each) => each.url !== url)
}

/**
 * A new worker has to listen where its predecessor did: an app that takes another port when its own is busy would
 * otherwise be ready where no client looks for it. `worker`: is ready in all other respects; `how`: whether those count
 * too that it may do without. Returns URLs on which it does not listen yet.
 */
export function missingAddresses ({ state }: Transition, worker: Worker,
  { mayBeLate = true }: { mayBeLate?: boolean } = {}): string[]
{
  if (state.options.ready.addresses === 'any') return []
  const has = new Set(worker.addresses.map(({ url }) => placeOf(url)))
  const expected = (state.addresses[slotOf(worker)] ?? []).filter(({ url, isFixed, isOfProcess, isLate }) => {
    if (isLate) return isFixed && mayBeLate && hasPredecessor(state, worker, url)
    return isFixed && !(isOfProcess && isUnserved(state, url))
  })
  return expected.map(({ url }) => url).filter((url) => !has.has(placeOf(url)))
}

/** Tells whether the worker that it is to replace still serves there */
function hasPredecessor ({ workers }: PoolState, { id, slot }: Worker, url: string): boolean {
  return Object.values(workers).some((each) =>
    each.id !== id && each.slot === slot && each.addresses.some((its) => its.url === url)
  )
}

/**
 * While a ready worker listens at the path of its process, its successor is held back: what their threads listen on
 * cannot be seen, and the app may have moved to another port without a word. Without such a worker there is nobody to
 * protect. Returns whether no ready worker listens there.
 */
function isUnserved ({ workers }: PoolState, url: string): boolean {
  return !Object.values(workers).some(({ state, addresses }) =>
    state === 'ready' && addresses.some((each) => each.url === url)
  )
}

function isNamedAfter (url: string, pid: number | null) {
  return pid !== null && url.startsWith('unix:') && url.split(/\D+/).includes(String(pid))
}

/** `report`: of its readiness, kept until it listens */
export function awaitAddresses (transition: Transition, worker: Worker, report: NonNullable<Worker['report']>) {
  worker.report = report
  if (isProgram(transition, worker) || missingAddresses(transition, worker, { mayBeLate: false }).length === 0) return
  transition.command({ type: 'set-deadline', deadline: 'addresses', id: worker.id, ms: GRACE_MS })
}

/**
 * A program of another language opens its next port when it likes. It never finds its own port in use, so it does not
 * move to another one.
 */
function isProgram ({ state }: Transition, { release }: Worker) {
  return runtimeOf(state, release) === 'other'
}

/**
 * @returns whether it may still be starting, although it is ready: an app may
 * open its second port once it is connected to a database
 */
export function opensLate (transition: Transition, worker: Worker): boolean {
  return worker.state === 'ready' && transition.at - worker.forkedAt < transition.state.options.ready.timeoutMs
}

/** `worker`: is ready: its successors have to listen at the same addresses */
export function keepAddresses ({ state }: Transition, worker: Worker) {
  state.addresses[slotOf(worker)] = [...worker.addresses]
}

/** `worker`: has not listened there in time. Returns why it is not ready. */
export function listensElsewhere (transition: Transition, worker: Worker): string {
  const missing = missingAddresses(transition, worker, { mayBeLate: false })
  const own = worker.addresses.map(({ url }) => url)
  const where = own.join(', ') || 'no address'
  const hasProcessPath = (transition.state.addresses[slotOf(worker)] ?? []).some(({ url, isOfProcess }) =>
    isOfProcess && missing.includes(url)
  )
  const advice = hasProcessPath
    ? '; a path with the pid of a worker is out of reach for the next one: set rollout.order: stop-first, or, where the app serves nothing from threads, ready.addresses: any'
    : ''
  return `worker ${worker.id} (slot ${worker.slot}) listens on ${where}, but the worker before it on ${
    missing.join(', ')
  } (option ready.addresses: same)${advice}`
}

/**
 * Once no worker listens at an address any more, nobody needs it. It is freed for the next worker, which may have found
 * it in use. If that one does not listen there either, the app has moved.
 * @param worker that has failed because of its addresses
 */
export function releaseAddresses (transition: Transition, worker: Worker) {
  const missing = missingAddresses(transition, worker, { mayBeLate: false }).map(placeOf)
  const { workers, addresses } = transition.state
  if (Object.values(workers).some(({ id, addresses: its }) =>
    id !== worker.id && its.some(({ url }) => missing.includes(placeOf(url)))
  )) return
  const slot = slotOf(worker)
  if (addresses[slot].some(({ isVacant }) => isVacant)) delete addresses[slot]
  else addresses[slot] = addresses[slot].map((address) => ({ ...address, isVacant: true }))
  transition.command({ type: 'close-unused-sockets' })
}

/** @returns URLs on which workers listen. While none does: those of the last ones, whose sockets are still open */
export function listAddresses ({ workers, addresses }: PoolState): string[] {
  const own = Object.values(workers).flatMap((worker) => worker.addresses)
  const all = own.length > 0 ? own : Object.values(addresses).flat()
  return [...new Set(all.map(({ url }) => url))]
}

/** Only a worker that has a slot becomes ready. */
export function slotOf ({ slot }: Pick<Worker, 'slot'>) {
  return Number(slot)
}

/** @returns of a UDP port, whose app may be a server of HTTP that does not listen yet */
export function isOfUdp (url: string): boolean {
  return url.startsWith('udp:')
}

/** An address is the same with TLS and without. */
function placeOf (url: string) {
  return url.replace(/^[a-z]+:\/\//, '')
}
