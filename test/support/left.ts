import { readdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { addressOf, endEach, findStarted, listeningSockets } from './leftovers.ts'
import { PLACES } from './place.ts'
import { until } from './until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** What a server closes, and a process ends, it has done a moment later. */
const PATIENCE_MS = 5000
/** Files of a lane share a browser: it has its files where the first of them has its own. */
const OF_BROWSER = /chromium|playwright/
/** Node listens from the first fork of a process on; and at its end nobody is left to be disturbed. */
const OF_THE_PROCESS: (string | symbol)[] = ['internalMessage', 'exit']
/** npm has Node keep there what it has compiled. */
const OF_NPM = 'node-compile-cache'
const TEMPORARY_FOLDER = /^t-\w{6}$/
/** What a clone gets from tools that run beside the tests. */
const OF_TOOLS = /^(node_modules|dist|types|coverage)$|\.log$/

export type Surroundings = ReturnType<typeof lookAround>

/** What a test file shares with the next one of its process, and with the machine. */
export function lookAround () {
  return { env: { ...process.env }, cwd: process.cwd(),
    listeners: new Map(process.eventNames().map((name) => [name, process.listenerCount(name)])),
    servers: listeningSockets(), files: new Set(filesOfProject()) }
}

/** @returns the same, once it had the time to go; the processes are ended */
export async function leftSince (before: Surroundings): Promise<string[]> {
  let left: string[] = []
  await until(() => (left = leftNow(before)).length === 0, 'the end of all', { patienceMs: PATIENCE_MS }).catch(
    () => {}
  )
  if (left.length > 0) endEach(startedIn(String(before.env.TEST_PLACE)))
  return left
}

export function leftNow ({ env, cwd, listeners, servers: known, files }: Surroundings): string[] {
  const place = String(env.TEST_PLACE)
  return [
    ...[...new Set([...Object.keys(env), ...Object.keys(process.env)])].filter((name) =>
      env[name] !== process.env[name]
    ).map((name) => `the variable ${name}`),
    ...process.cwd() === cwd ? [] : [`the working folder ${process.cwd()}`],
    ...process.eventNames().filter((name) =>
      !OF_THE_PROCESS.includes(name) && process.listenerCount(name) > (listeners.get(name) ?? 0)
    ).map((name) => `a listener of the process for ${String(name)}`),
    ...[...listeningSockets().keys()].filter((inode) => !known.has(inode)).map((inode) =>
      `a server at ${addressOf(inode)}`
    ),
    ...startedIn(place).map(({ pid, command }) => `the process ${pid}, ${command}`),
    ...readdirSync(place).filter((name) =>
      !TEMPORARY_FOLDER.test(name) && !PLACES.includes(name) && name !== OF_NPM && !OF_BROWSER.test(name)
    ).map((name) => `the file ${path.join(place, name)}`),
    ...filesOfProject().filter((name) => !files.has(name)).map((name) => `the file ${name}`)
  ]
}

function startedIn (place: string) {
  return findStarted(place).filter(({ command }) => !OF_BROWSER.test(command))
}

/** Where tests run programs, and what they may take for their working folder. */
function filesOfProject (): string[] {
  const names = readdirSync(path.join(ROOT, 'test', 'fixtures'), { recursive: true, encoding: 'utf8' }).map((name) =>
    path.join('test', 'fixtures', name)
  )
  return [...readdirSync(ROOT).filter((name) => !OF_TOOLS.test(name)), ...names]
}
