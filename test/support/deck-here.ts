import { writeFileSync } from 'node:fs'
import { setMaxListeners } from 'node:events'
import path from 'node:path'
import { loadSite } from '../../server/admin/site-code.ts'
import { runCliHere } from './cli-here.ts'
import { createDeckClient, readMasters } from './deck-client.ts'
import { FIXTURES, WORKERS, type TestOwner } from './deck.ts'
import { tempFolder } from './folder.ts'
import { PATIENCE_MS } from './until.ts'

export type DeckHere = Awaited<ReturnType<typeof startDeckHere>>

// Each master listens for signals, and for exceptions that nobody catches.
setMaxListeners(100, process)
// Of this process as of its workers: apps choose a free port unless they are told otherwise.
delete process.env.PORT

/**
 * Runs `clusterdeck start` on a fixture, with the whole command line, configuration and master, in this very process:
 * only the workers are others. So there is no keeper, and nothing here can be killed.
 * @param t the test that owns it; the deck ends with the test, however that ends
 * @param app a file of test/fixtures, or an absolute path; null: `flags` say what to start
 * @param options `env`: of the app; `cwd`: default: the folder of the app
 */
export async function startDeckHere (t: TestOwner, app: string | null,
  { workers = WORKERS, flags = [], args = [], env = {}, dataDir = tempFolder(),
    cwd = path.dirname(path.resolve(FIXTURES, app ?? '')) }: { workers?: number, flags?: string[], args?: string[],
      env?: Record<string, string | undefined>, dataDir?: string, cwd?: string } = {})
{
  // The first request would wait for it, and on a busy machine for longer than a master lets it.
  await loadSite()
  const output = { stdout: '', stderr: '' }
  const words = ['start', ...(app === null ? [] : [path.resolve(FIXTURES, app)]), '--workers', String(workers),
    '--admin-port', '0', '--data-dir', dataDir, ...flags]
  if (Object.keys(env).length > 0) words.push('--config', configure(env))
  if (args.length > 0) words.push('--', ...args)
  const before = await readMasters(dataDir)
  const exited = runCliHere(words, { cwd, output }).then(({ code }) => ({ code, signal: null }))
  const client = createDeckClient({ folder: dataDir, output, exited, before })
  let stopping: Promise<{ code: number, signal: null }> | undefined

  const deck = Object.assign(client, {
    exited,

    /** Ends the master; the exit of the first call is given to every other. */
    stop: () => (stopping ??= stop())
  })
  t.after(deck.stop)

  await client.meetNext()
  return deck

  async function stop () {
    client.close()
    // Refused by one that has ended, or is about to.
    client.api('/stop', { method: 'POST' }).catch(() => {})
    const timer = setTimeout(killAll, PATIENCE_MS)
    const result = await exited
    clearTimeout(timer)
    return result
  }
}

/** As startDeckHere(), until all workers are ready. */
export async function startReadyHere (t: TestOwner, app: string | null,
  options: Parameters<typeof startDeckHere>[2] = {})
{
  const deck = await startDeckHere(t, app, options)
  await deck.until({ ready: options.workers ?? WORKERS })
  return deck
}

/** As by two signals of an operator: no master may outlive its test, and so none of this process goes on. */
function killAll () {
  console.error(`a master had not stopped within ${PATIENCE_MS} ms: all of this process are told to end at once`)
  process.emit('SIGTERM')
  process.emit('SIGTERM')
}

/** The environment of the app; this process keeps its own. Returns a configuration file. */
function configure (env: Record<string, string | undefined>): string {
  const file = path.join(tempFolder(), 'clusterdeck.config.json')
  const variables = Object.entries(env).map(([name, value]) => [name, value ?? null])
  writeFileSync(file, JSON.stringify({ env: Object.fromEntries(variables) }))
  return file
}
