import { setTimeout as wait } from 'node:timers/promises'
import { ask, HUNG_MS, untilAnswered } from './client.ts'
import type { Running } from './peers.ts'
import type { Cell } from './rows.ts'

/**
 * SIGKILLs workers while somebody asks.
 * @param how `count`: of victims
 * @returns figures of that name
 */
export async function killAndWatch ({ port, workers: pids }: Running,
  { name, workers, count }: { name: string, workers: number, count: number }): Promise<Cell>
{
  const before = await untilAnswered(port, workers)
  const victims = (await pids()).filter((pid) => before.some((who) => who.startsWith(`${pid}.`))).slice(0, count)
  const over = new AbortController()
  const failures = [] as string[]
  const onFailure = (error: Error) => {
    failures.push(error.name)
  }
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
  return { [`${name}: failed`]: failures.length - hung, [`${name}: hung`]: hung,
    [`${name}: ms to full strength`]: took }
}

/** Each waits at most HUNG_MS. */
async function askEvery (port: number, { over, onFailure }: { over: AbortSignal, onFailure: (error: Error) => void }) {
  const all = []
  while (!over.aborted) {
    all.push(ask(port, '/hello', HUNG_MS).catch(onFailure))
    await wait(10)
  }
  await Promise.all(all)
}
