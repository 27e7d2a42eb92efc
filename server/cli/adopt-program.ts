import { spawn } from 'node:child_process'
import { once, setMaxListeners } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { formatExactDuration } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { answerOf, openLine, passSockets, untilServing } from '../handover/host-line.ts'
import { lineToRoot, openRootLine, ROOT_LINE, type LineToRoot } from '../programs/root-line.ts'
import { takePlaces, type Takeover } from '../programs/takeover.ts'
import { placeText } from '../system/place-text.ts'
import { isAlive } from '../system/process-identity.ts'
import { locatePm2 } from '../import/running-pm2.ts'
import { factsOf } from '../programs/holder.ts'
import { oneLine } from '../system/one-line.ts'
import { ownerOfProcess } from '../system/process-owner.ts'
import { userId } from '../system/user.ts'
import { stopUnit, unitAround } from '../systemd/unit-of.ts'
import { scriptPath } from '../system/built.ts'
import { processOf, programAt, turnsOfPm2, type Adoptable } from './adoptable.ts'
import { createTools } from './context.ts'
import { meetHost } from './host-start.ts'
import { showApps } from './ls.ts'
import { checkedDuration, misuse, timeoutOf } from './usage.ts'
import type { Readable } from 'node:stream'
import type { Terminal } from './program.ts'
import type { ApiClient } from './api-client.ts'
import type { NewAdoption } from '../host/api.ts'

export type Options = { pm2?: true | string[], pid?: string, port?: string, workers?: string, name?: string,
  grace?: string, timeout?: string, json?: true, app?: string, wait?: boolean }
type Move = { program: Adoptable, takeover: Takeover }
type How = { meet: () => ReturnType<typeof meetHost>, root: LineToRoot | null, name: string | undefined,
  graceMs: number, late: Promise<never>, tell: (text: string) => void }

const DEFAULT_GRACE = '10s'
const LOOK_EVERY_MS = 50
/** How long a program is waited for that was told to end. It goes on ending meanwhile. */
const ENDS_WITHIN_MS = 60_000

const AS_USER = scriptPath('as-user.js')
/** Root's variables that are for everybody; the rest may be secret. */
const PASSED = /^(PATH|TERM|TZ|LANG|LANGUAGE|LC_\w+|CLUSTERDECK_(?!TOKEN|URL)\w+)$/

/**
 * Starts apps in the host of this user in the place of programs that run: the workers get sockets on the same addresses
 * and become ready while the program serves. Then it gets no new connections, and is asked to end. `folder`: is for a
 * deck. Returns the exit code.
 * @throws {DeckError} usage, not-possible, start-failed, timed-out; a program whose workers did not get ready goes on
 *   as before, and of several the others move all the same
 */
export async function adoptPrograms (folder: string | undefined, options: Options,
  { env: { [ROOT_LINE]: ofRoot, ...env }, ...streams }: Terminal): Promise<number>
{
  const terminal = { ...streams, env }
  checkOptions(folder, options)
  const deadline = timeoutOf(options, terminal.env)
  const graceMs = checkedDuration('--grace', options.grace ?? DEFAULT_GRACE)
  const { answer, tell } = createTools({ json: options.json }, terminal)
  const exitCode = await adoptForUser(options, terminal)
  if (exitCode !== null) return exitCode
  const root = lineToRoot({ [ROOT_LINE]: ofRoot })
  const turns = options.pm2 === undefined
    ? [{ name: '', find: () => programAt(options, root) }]
    : await turnsOfPm2(options.pm2 === true ? [] : options.pm2, options, terminal)
  // In the end the host is asked of all apps at the same time.
  setMaxListeners(0, deadline.signal)
  let met: ReturnType<typeof meetHost> | undefined
  const meet = () => met ??= meetHost(deadline, terminal)
  const how = { meet, root, name: options.name, graceMs, late: rejectLate(deadline.signal), tell }
  const names = []
  const problems: { name: string, error: DeckError }[] = []
  for (const { name, find } of turns) {
    try {
      const { app, late } = await takeTurn(find, how)
      names.push(app)
      if (late !== null) problems.push({ name, error: new DeckError('timed-out', late) })
    } catch (error) {
      if (!(error instanceof DeckError)) throw error
      problems.push({ name, error })
      if (turns.length > 1) tell(`${name} does not move: ${error.message}`)
    }
  }
  if (met && names.length > 0) await showApps(names, { ...await met, terminal, answer })
  if (problems.length > 0)
    throw turns.length === 1
      ? problems[0].error
      : new DeckError(problems[0].error.code, problems.map(({ name, error }) => `${name}: ${error.message}`).join('; '))
  return 0
}

function checkOptions (folder: string | undefined, options: Options) {
  const given = (['pm2', 'port', 'pid'] as const).filter((name) => options[name] !== undefined)
  if (given.length > 1)
    throw misuse('adopt', 'one of --pm2, --port and --pid', given.map((name) => `--${name}`).join(' and '))
  const ofDeck = folder ?? (options.app !== undefined ? '--app' : options.wait === false ? '--no-wait' : undefined)
  if (ofDeck !== undefined) throw misuse(`--${given[0]}`, 'without what names or moves a deck', `${ofDeck} too`)
}

/** Its sockets are held for its turn alone: what PM2 restarts meanwhile, or later, has to find its address free. */
async function takeTurn (find: () => Promise<Adoptable>, how: How): ReturnType<typeof moveIn> {
  const program = await find()
  const takeover = takePlaces(program.listening, { except: program.except, root: how.root })
  try {
    const { host } = await how.meet()
    return await moveIn({ program, takeover }, { ...how, host })
  } finally {
    takeover.close()
  }
}

/** @returns `app`: what the host calls it; `late`: the program has not ended */
async function moveIn ({ program, takeover }: Move,
  { graceMs, tell, ...how }: How & { host: ApiClient }): Promise<{ app: string, late: string | null }>
{
  const { text, processes, isAlone, isJob } = program
  const places = takeover.open().map(placeText)
  if (isJob && places.length === 0 && processes.length > 0)
    throw new DeckError('not-possible', `${text} is a job that runs at this moment: call this again once it has ended`)
  tell(
    `${text} ${
      places.length > 0 && isAlone ? `serves on ${places.join(', ')}` : isJob ? 'has nobody to serve' : 'runs'
    }; new workers start beside it`
  )
  const app = await startBeside({ program, takeover }, { tell, ...how })
  takeover.steer()
  const left = await untilNone(() => takeover.connections() + takeover.queued(), graceMs)
  tell(`${app} serves, and the other one is asked to end: ${program.stopText}`)
  if (left > 0)
    tell(`connections that it still had after ${formatExactDuration(graceMs)} (--grace), and that end with it: ${left}`)
  await program.stop()
  await untilNone(() => processes.filter(isAlive).length, ENDS_WITHIN_MS)
  const late = processes.filter(isAlive).map(({ pid }) => pid)
  if (late.length > 0)
    return { app,
      late: `${app} serves, and ${text} has not ended within ${
        formatExactDuration(ENDS_WITHIN_MS)
      } after ${program.stopText}: wait until it has finished what it still has, or end it yourself: kill -9 ${
        late.join(' ')
      }` }
  tell(`${text} has ended`)
  for (const line of program.afterwards) tell(line)
  return { app, late: null }
}

/**
 * Has the host start the app, with the sockets, and waits until its workers are ready. Returns what the host calls it.
 */
async function startBeside ({ program: { text, order, isAlone }, takeover }: Move,
  { host, name, late, tell }: Omit<How, 'meet' | 'root' | 'graceMs'> & { host: ApiClient }): Promise<string>
{
  const { path, secret } = await host.post<NewAdoption>('/host/adoptions', { name })
  const line = await openLine(path)
  try {
    line.send({ type: 'program', secret, from: text, order })
    const { name: app } = await answerOf(line, 'accepted')
    await passSockets(line, path,
      takeover.open().map(({ fd, index, ...place }, at) => ({ key: `given ${at}`,
        data: { given: { ...place, isCopy: index === null, isCertain: isAlone } }, socket: fd, kind: 'stream' })
      ))
    line.send({ type: 'released' })
    takeover.holdBack()
    await Promise.race([
      untilServing(line, { onSilent: () => tell('the host has not said anything for half a minute') }),
      late
    ])
    return String(app)
  } catch (error) {
    if (error instanceof DeckError)
      throw new DeckError(error.code, `adopt: ${error.message}; ${text} goes on as before`)
    throw error
  } finally {
    line.close()
  }
}

/** @returns rejects with timed-out, also where nobody waits for it */
function rejectLate (signal: AbortSignal): Promise<never> {
  const late = once(signal, 'abort').then(() => {
    throw new DeckError('timed-out', 'its new workers were not ready in time (--timeout)')
  })
  late.catch(() => {})
  return late
}

/** Waits until nothing is left of what the program has begun, or the time is up. Returns how much is. */
async function untilNone (countLeft: () => number, withinMs: number): Promise<number> {
  const end = performance.now() + withinMs
  while (countLeft() > 0 && performance.now() < end) await wait(LOOK_EVERY_MS)
  return countLeft()
}

/**
 * Where root takes over what another user runs, that user does it, in a process without any right of root: all that is
 * read, asked, written and run may be what this user has made of it. Root keeps the line to it alone.
 * @returns the exit code; null: it is not for another user
 * @throws {DeckError} usage, not-possible
 */
async function adoptForUser (options: Options, terminal: Terminal): Promise<number | null> {
  if (userId() !== 0) return null
  const { pid, home } = options.pm2 === undefined ? { pid: processOf(options), home: undefined } : locatePm2(terminal)
  const owner = ownerOfProcess(pid)
  if (owner?.user === 0 || factsOf(pid) === null) return null
  if (!owner?.isOpen)
    throw new DeckError('not-possible',
      `process ${pid} has other rights than its user, or has begun with others (setuid, setcap, AmbientCapabilities): what that user may not look into is not taken over for that user`)
  const unit = home === undefined ? unitAround(pid) : null
  const line = openRootLine({ user: owner.user,
    stop: async () => unit && !unit.isOfUser ? await stopUnit(unit) : 'it is no service of the system' })
  if (line === null)
    throw new DeckError('not-possible',
      'what another user runs can be taken over on Linux alone, on x86-64 and arm64, with the package koffi, which npm installs where it can')
  const env = Object.entries(terminal.env).filter(([name]) => PASSED.test(name))
  // In a session of its own: what shares the terminal of root could type into it.
  const child = spawn(process.execPath, [AS_USER, String(owner.user), owner.groups.join(), terminal.script, 'adopt',
    ...wordsOf(options)], { cwd: terminal.cwd,
    env: { ...Object.fromEntries(env), ...(home !== undefined && { PM2_HOME: home }), [ROOT_LINE]: '1' },
    detached: true, stdio: ['ignore', 'pipe', 'pipe', line.theirs, 'pipe'] })
  line.serve(child)
  for (const stream of ['stdout', 'stderr'] as const) {
    createInterface(child[stream] as Readable).on('line', (text) => {
      terminal[stream].write(`${oneLine(text)}\n`)
    })
  }
  const [code] = await once(child, 'close')
  line.close()
  return code ?? 1
}

function wordsOf (options: Options): string[] {
  return Object.entries(options).filter(([name]) => name !== 'wait').flatMap(([name, value]) =>
    value === true ? [`--${name}`] : Array.isArray(value) ? [`--${name}`, ...value] : [`--${name}=${value}`]
  )
}
