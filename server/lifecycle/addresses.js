/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {import('./state.js').PoolState} PoolState */

/**
 * Where a worker listens: `url` such as `http://localhost:3000`; `isFixed`: by the app's choice and with the other workers,
 * so that a successor can be expected to have it too. `isVacant`: nobody listens there any more.
 * @typedef {{ url: string, isFixed: boolean, isVacant?: boolean }} Address
 */

// An app may open listeners without end, as FTP servers do for every transfer.
const MAX_PER_WORKER = 32
/** How long a worker that is ready but for its addresses may take to listen on the rest of them. */
const GRACE_MS = 3000

/** @param {Transition} transition @param {Worker} worker @param {Address} address */
export function addAddress (transition, worker, { url, isFixed }) {
  const known = worker.addresses
  if (known.length >= MAX_PER_WORKER || known.some((each) => each.url === url)) return
  known.push({ url, isFixed })
  transition.emitForWorker('worker.listening', worker, { message: url })
}

/** @param {Worker} worker @param {string} url its app has closed the server */
export function removeAddress (worker, url) {
  worker.addresses = worker.addresses.filter((each) => each.url !== url)
}

/**
 * A new worker has to listen where its predecessor did: an app that takes another port when its own is busy would
 * otherwise be ready where no client looks for it.
 * @param {Transition} transition @param {Worker} worker that has become ready otherwise
 * @returns {string[]} where it does not listen yet
 */
export function missingAddresses ({ state }, worker) {
  if (state.options.ready.addresses === 'any') return []
  const has = new Set(worker.addresses.map(({ url }) => placeOf(url)))
  return (state.addresses[slotOf(worker)] ?? []).filter(({ url, isFixed }) => isFixed && !has.has(placeOf(url))).map(({ url }) => url)
}

/** @param {Transition} transition @param {Worker} worker @param {NonNullable<Worker['report']>} report what it has said of itself */
export function awaitAddresses (transition, worker, report) {
  worker.report = report
  transition.command({ type: 'set-deadline', deadline: 'addresses', id: worker.id, ms: GRACE_MS })
}

/** @param {Transition} transition @param {Worker} worker it is ready: this is where its successors have to listen */
export function keepAddresses ({ state }, worker) {
  state.addresses[slotOf(worker)] = [...worker.addresses]
}

/**
 * @param {Transition} transition @param {Worker} worker whose time is up
 * @returns {string} why it is not ready
 */
export function listensElsewhere (transition, worker) {
  const missing = missingAddresses(transition, worker)
  const own = worker.addresses.map(({ url }) => url)
  return `worker ${worker.id} (slot ${worker.slot}) listens on ${own.join(', ') || 'no address'}, but the worker before it on ${missing.join(', ')} (option ready.addresses: same)`
}

/**
 * With the last worker that listens there an address protects nobody any more. It is made free for the next worker, which
 * may have seen it taken; if that one does not want it either, the app has moved.
 * @param {Transition} transition @param {Worker} worker that has failed because of its addresses
 */
export function releaseAddresses (transition, worker) {
  const missing = missingAddresses(transition, worker).map(placeOf)
  const { workers, addresses } = transition.state
  if (Object.values(workers).some(({ id, addresses: its }) => id !== worker.id && its.some(({ url }) => missing.includes(placeOf(url))))) return
  const slot = slotOf(worker)
  if (addresses[slot].some(({ isVacant }) => isVacant)) delete addresses[slot]
  else addresses[slot] = addresses[slot].map((address) => ({ ...address, isVacant: true }))
  transition.command({ type: 'close-unused-sockets' })
}

/** @param {PoolState} state @returns {string[]} URLs on which its workers listen; while none does, those of the last ones, as their sockets are still there */
export function listAddresses ({ workers, addresses }) {
  const own = Object.values(workers).flatMap((worker) => worker.addresses)
  const all = own.length > 0 ? own : Object.values(addresses).flat()
  return [...new Set(all.map(({ url }) => url))]
}

/** Only one that has a slot comes so far as to be ready. @param {Pick<Worker, 'slot'>} worker */
export function slotOf ({ slot }) {
  return Number(slot)
}

/** With TLS or without, it is the same address. @param {string} url */
function placeOf (url) {
  return url.replace(/^[a-z]+:\/\//, '')
}
