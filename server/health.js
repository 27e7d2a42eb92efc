/**
 * The one sentence that says how the cluster is, most urgent truth first.
 * @typedef {import('./events/kinds.js').Tone} Tone
 * @typedef {{ tone: Tone, text: string, hint: string }} Health
 * @typedef {ReturnType<typeof import('./lifecycle/snapshot.js').snapshot> & { history?: { problem: string | null } }} Snapshot
 */

/** Asked in this order; the first answer stands. */
const SENTENCES = [whileStopping, ofBlocked, ofCrashLoops, ofNoneReady, ofUnresponsive, ofUpgrade, ofRollout, ofBackoff, ofStarting, ofHistory, ofDrift]

/** @param {Snapshot} snapshot @param {{ openCrashes?: number }} [more] groups that nobody has resolved @returns {Health} */
export function describeHealth (snapshot, { openCrashes = 0 } = {}) {
  for (const sentence of SENTENCES) {
    const health = sentence(snapshot)
    if (health) return health
  }
  const { desiredWorkers: total, workers } = snapshot
  const leaving = workers.filter(({ state }) => state === 'draining' || state === 'stopping').length
  const ofCrashes = openCrashes === 0 ? 'No open crashes.' : `${openCrashes} open ${openCrashes === 1 ? 'crash' : 'crashes'}.`
  return {
    tone: 'ok',
    text: total === 1 ? 'The worker is ready' : `All ${total} workers are ready`,
    hint: leaving > 0 ? `${count(leaving, 'old worker')} still draining.` : ofCrashes
  }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function whileStopping ({ state, workers }) {
  if (state !== 'stopping') return null
  const live = workers.filter(({ pid }) => pid !== null).length
  return { tone: 'drain', text: 'The master is stopping', hint: live > 0 ? `${count(live, 'worker')} still draining.` : 'All workers have exited.' }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofBlocked ({ workers }) {
  const slots = workers.filter(({ state }) => state === 'held').map(({ slot }) => slot)
  if (slots.length === 0) return null
  const who = slots.length === 1 ? `Slot ${slots[0]} is` : `Slots ${list(slots)} are`
  return { tone: 'bad', text: `${who} blocked`, hint: 'Files of the release changed after its deploy. Deploy, or restore the files.' }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofCrashLoops ({ workers, desiredWorkers }) {
  const slots = [...new Set(workers.filter(({ crashLooping }) => crashLooping).map(({ slot }) => slot))]
  if (slots.length === 0) return null
  const hint = `${slots.length === 1 ? 'It keeps' : 'They keep'} crashing. Each restart waits longer than the last. See Crashes for the reason.`
  if (slots.length === 1) return { tone: 'bad', text: `Slot ${slots[0]} is crash-looping`, hint }
  const who = slots.length === desiredWorkers ? `All ${slots.length} slots` : `Slots ${list(slots)}`
  return { tone: 'bad', text: `${who} are crash-looping`, hint }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofNoneReady ({ state, readyWorkers }) {
  if (state === 'starting' || readyWorkers > 0) return null
  return { tone: 'bad', text: 'No worker is ready', hint: 'New connections wait in the socket queue.' }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofUnresponsive ({ workers, desiredWorkers }) {
  const stuck = workers.filter(({ state }) => state === 'unresponsive').length
  return stuck === 0 ? null : { tone: 'bad', text: `${portion(stuck, desiredWorkers)} unresponsive`, hint: 'Its event loop is blocked.' }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofUpgrade ({ upgrade }) {
  return upgrade ? { tone: 'info', text: 'Upgrading the master', hint: 'The next master starts its workers. This one serves until they are ready.' } : null
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofRollout ({ rollout }) {
  if (!rollout) return null
  const { replaced, total } = rollout.progress
  const hint = `${replaced} of ${count(total, 'worker')} replaced.`
  if (rollout.isHeld) return { tone: 'bad', text: rolloutTitle(rollout), hint: `${rollout.reason}. ${hint} Retry or abort it.` }
  return { tone: rollout.state === 'paused' ? 'warn' : 'info', text: rolloutTitle(rollout), hint }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofHistory ({ history }) {
  if (!history?.problem) return null
  return { tone: 'warn', text: 'The history cannot be written', hint: `The app is served as ever. The reason: ${history.problem}` }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofBackoff ({ workers, desiredWorkers, readyWorkers }) {
  const waiting = workers.filter(({ state }) => state === 'backoff').length
  // A slot that is past its backoff has a starting worker again; to people both are the same restart.
  const restarting = waiting + workers.filter(({ state, restarts }) => state === 'starting' && restarts > 0).length
  if (restarting === 0 || readyWorkers >= desiredWorkers) return null
  return { tone: 'warn', text: `${portion(restarting, desiredWorkers)} restarting`, hint: `${count(readyWorkers, 'worker')} ready.` }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofStarting ({ state, desiredWorkers, readyWorkers }) {
  // A master that has just begun wants no worker yet.
  if (desiredWorkers === 0) return { tone: 'info', text: 'Starting', hint: '' }
  if (readyWorkers >= desiredWorkers) return null
  if (state === 'starting') return { tone: 'info', text: `Starting ${count(desiredWorkers, 'worker')}`, hint: `${readyWorkers} ready.` }
  return { tone: 'info', text: `${readyWorkers} of ${count(desiredWorkers, 'worker')} ready`, hint: 'The others are starting.' }
}

/** @param {Snapshot} snapshot @returns {Health | null} */
function ofDrift ({ workers, desiredWorkers }) {
  const drifted = workers.filter((worker) => worker.drifted).length
  if (drifted === 0) return null
  const who = desiredWorkers === 1 ? 'The worker has' : `${drifted} of ${desiredWorkers} workers ${drifted === 1 ? 'has' : 'have'}`
  return { tone: 'warn', text: `${who} drifted`, hint: 'Files of the release changed after its deploy. Deploy to give all workers the same files.' }
}

/** @param {Pick<import('./deck.js').RolloutView, 'kind' | 'state' | 'isHeld' | 'from' | 'to' | 'steps'>} rollout `to`: null until its release is prepared */
export function rolloutTitle ({ kind, state, isHeld, from, to, steps }) {
  if (state === 'aborting') return `Reverting to ${from}`
  if (state === 'preparing') return 'Preparing a release'
  if (state === 'paused') return `${nameOf(kind, to)} ${isHeld ? 'awaits an operator' : 'paused'}`
  if (state === 'canary') return `Running a canary of ${to}`
  if (kind === 'deploy') return `Deploying ${to}`
  if (kind === 'rollback') return `Rolling back to ${to}`
  return steps.length === 1 ? `Restarting slot ${steps[0].slot}` : 'Restarting all workers'
}

/** @param {string} kind @param {string | null} to */
function nameOf (kind, to) {
  if (kind === 'restart') return 'Restart'
  return `${kind === 'deploy' ? 'Deploy of' : 'Rollback to'} ${to ?? 'a new release'}`
}

/** @param {number} n @param {number} total */
function portion (n, total) {
  if (total === 1) return 'The worker is'
  return `${n} of ${total} workers ${n === 1 ? 'is' : 'are'}`
}

/** @param {number} n @param {string} noun */
export function count (n, noun) {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

/** @param {number[]} items */
function list (items) {
  return items.length > 4 ? `${items.slice(0, 3).join(', ')} and ${items.length - 3} more` : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
}
