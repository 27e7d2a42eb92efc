import { setTimeout as wait } from 'node:timers/promises'
import { ask, HUNG_MS, untilAnswered } from './client.js'

/**
 * SIGKILLs workers while somebody asks.
 * @param {import('./peers.js').Running} running @param {{ name: string, workers: number, count: number }} how `count`: of victims
 * @returns {Promise<import('./rows.js').Cell>} figures of that name
 */
export async function killAndWatch ({ port, workers: pids }, { name, workers, count }) {
  const before = await untilAnswered(port, workers)
  const victims = (await pids()).filter((pid) => before.some((who) => who.startsWith(`${pid}.`))).slice(0, count)
  const over = new AbortController()
  const failures = /** @type {string[]} */ ([])
  const onFailure = (/** @type {Error} */ error) => { failures.push(error.name) }
  const asking = askEvery(port, { over: over.signal, onFailure })
  await wait(200)
  const killedAt = performance.now()
  for (const pid of victims) process.kill(pid, 'SIGKILL')
  const gone = before.filter((who) => victims.some((pid) => who.startsWith(`${pid}.`)))
  await untilAnswered(port, workers, { others: gone, onFailure })
  const took = performance.now() - killedAt
  await wait(200)
  over.abort()
  // Who hangs is waited for.
  await asking
  const hung = failures.filter((each) => each === 'TimeoutError').length
  return { [`${name}: failed`]: failures.length - hung, [`${name}: hung`]: hung, [`${name}: ms to full strength`]: took }
}

/** Each waits at most HUNG_MS. @param {number} port @param {{ over: AbortSignal, onFailure: (error: Error) => void }} how */
async function askEvery (port, { over, onFailure }) {
  const all = []
  while (!over.aborted) {
    all.push(ask(port, '/hello', HUNG_MS).catch(onFailure))
    await wait(10)
  }
  await Promise.all(all)
}
