import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorCode } from '../../server/errors.ts'
import { createDeckClient, readMasters } from './deck-client.ts'
import { tempFolder } from './folder.ts'
import { PATIENCE_MS } from './until.ts'
import type { TestContext } from 'node:test'
import type { Readable } from 'node:stream'

export const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url))
export const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))

/** Where a test does not say how many. */
export const WORKERS = 2

export type Deck = Awaited<ReturnType<typeof startDeck>>
export type TestOwner = Pick<TestContext, 'after'>
/** Who starts it, where that is not the test itself. */
export type Launch = {
  /** a program and its arguments, which starts what follows */
  through?: string[],
  /** options of node, for keeper and master */
  execArgv?: string[],
  /** to be passed on, from number 3 on */
  descriptors?: number[],
  env?: Record<string, string>,
  /** the process to signal, where it is not the one that was spawned */
  pidOf?: (child: { pid?: number }) => number | undefined,
  /** default: its events are, from the start */
  isFollowed?: boolean
}

/**
 * Runs `clusterdeck start` on a fixture as a user would, in processes of its own. Where neither the keeper, nor
 * signals, nor the death of the master are the point, startDeckHere() does with fewer.
 * @param t the test that owns it; the deck ends with the test, however that ends
 * @param app a file of test/fixtures, or an absolute path; null: `flags` say what to start
 */
export async function startDeck (t: TestOwner, app: string | null,
  { workers = WORKERS, flags = [], args = [], env = {}, dataDir, cli = CLI,
    cwd = path.dirname(path.resolve(FIXTURES, app ?? '')), launch = {} }: {
      workers?: number,
      /** further flags of `start` */
      flags?: string[],
      /** the app's own */
      args?: string[],
      env?: Record<string, string | undefined>,
      dataDir?: string,
      /** the command line of another installation */
      cli?: string,
      /** default: the folder of the app */
      cwd?: string,
      launch?: Launch
    } = {})
{
  const folder = dataDir ?? tempFolder()
  const before = await readMasters(folder)
  const { through = [], execArgv = [], descriptors = [], pidOf = ({ pid }) => pid, isFollowed } = launch
  const [program, ...words] = [...through, process.execPath, ...execArgv, cli, 'start',
    ...(app === null ? [] : [path.resolve(FIXTURES, app)]), '--workers', String(workers), '--admin-port', '0',
    '--data-dir', folder, ...flags, ...(args.length > 0 ? ['--', ...args] : [])]
  const child = spawn(program, words, { env: { ...process.env, PORT: undefined, ...launch.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...descriptors], cwd }) as ChildProcessByStdio<null, Readable, Readable>
  const output = collectOutput(child)
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const client = createDeckClient({ folder, output, exited, before, isFollowed })
  let stopping: Promise<{ code: number | null, signal: string | null }> | undefined

  const deck = Object.assign(client, {
    /** The keeper, or the master where there is none. */
    child,
    exited,

    /**
     * SIGKILLs the master, and whatever else is named, and waits for the next one.
     * @param others pids that die in the same instant
     */
    async loseMaster (others: number[] = []) {
      for (const pid of [client.masterPid, ...others]) process.kill(pid, 'SIGKILL')
      await client.meetNext()
    },

    signal: (signal: NodeJS.Signals) => kill(signal),

    /** Ends the master; the exit of the first call is given to every other. */
    stop: () => (stopping ??= stop())
  })
  t.after(deck.stop)

  await client.meetNext()
  return deck

  function kill (signal: NodeJS.Signals, pid = pidOf(child)) {
    try {
      // To the kernel 0, which a master has that was never met, is this process and all beside it.
      return Boolean(pid) && process.kill(Number(pid), signal)
    } catch (error) {
      // It has ended in between.
      if (errorCode(error) !== 'ESRCH') throw error
      return false
    }
  }

  async function stop () {
    client.close()
    if (child.exitCode === null && child.signalCode === null) kill('SIGTERM')
    let isStuck = false
    const timer = setTimeout(killAll, PATIENCE_MS)
    const result = await exited
    clearTimeout(timer)
    if (isStuck)
      throw new Error(
        `the deck had not stopped ${PATIENCE_MS} ms after SIGTERM; output: ${output.stdout}${output.stderr}`
      )
    return result

    /**
     * A master outlives its keeper, and a worker both: told twice, the master ends all. Of two signals of a kind it may
     * see one.
     */
    function killAll () {
      isStuck = true
      kill('SIGKILL')
      kill('SIGTERM', client.masterPid)
      kill('SIGINT', client.masterPid)
    }
  }
}

/** As startDeck(), until all workers are ready. */
export async function startReady (t: TestOwner, app: string | null, options: Parameters<typeof startDeck>[2] = {}) {
  const deck = await startDeck(t, app, options)
  await deck.until({ ready: options.workers ?? WORKERS })
  return deck
}

/** Runs `clusterdeck` with any arguments to its end. */
export async function runCli (args: string[],
  { env = {}, cwd, launch: { through = [], execArgv = [], descriptors = [], env: more } = {} }: {
    env?: Record<string, string | undefined>,
    cwd?: string,
    launch?: Launch
  } = {})
{
  const [program, ...words] = [...through, process.execPath, ...execArgv, CLI, ...args]
  const child = spawn(program, words, { env: { ...process.env, ...more, ...env }, cwd,
    stdio: ['ignore', 'pipe', 'pipe', ...descriptors] })
  const output = collectOutput(child)
  // A start that should have failed would run for ever.
  const timer = setTimeout(() => child.kill('SIGTERM'), 3 * PATIENCE_MS)
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  return { code, stdout: output.stdout, stderr: output.stderr }
}

/** Runs `clusterdeck` with any arguments in a process of its own, until it ends, or the test does. */
export function spawnCli (t: TestOwner, args: string[],
  { env = {}, cwd }: { env?: Record<string, string | undefined>, cwd?: string } = {})
{
  const child = spawn(process.execPath, [CLI, ...args], { env: { ...process.env, ...env }, cwd, stdio: 'pipe' })
  t.after(() => child.kill('SIGKILL'))
  const exited = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  return { child, output: collectOutput(child), exited }
}

function collectOutput (child: ChildProcess) {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text) => {
      output[name] += text
    })
  }
  return output
}
