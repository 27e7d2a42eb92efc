import { ChildProcess } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { FOR_OTHERS, runFolder } from './run-folder.ts'

// Makes a process of tests nobody's: its home, its temporary files and its working folder are its own, and so are those
// of whatever it starts. test/run.ts has it in each of its processes; for `node --test` test/support/folder.ts brings
// it.

/** Of the user who runs the tests: where programs keep things, and what would change what they do. */
const OF_THE_USER = /^(XDG_|CLUSTERDECK_|GIT_|PM2_HOME$|PORT$|INVOCATION_ID$|NOTIFY_SOCKET$|LISTEN_)/
/** GIT_SSL_CAINFO is of the machine. */
const OF_THE_MACHINE = /^GIT_SSL_/
const OUR_COMMAND = /\/server\/(cli|command-line)\.js$/

/** Gives the process other folders, which hold nothing. */
export function enterPlace () {
  const run = String(process.env.TEST_RUN)
  const place = mkdtempSync(run + path.sep)
  chmodSync(place, FOR_OTHERS)
  const own = (name: string) => path.join(place, name)
  for (const name of PLACES) mkdirSync(own(name), { mode: 0o700 })
  Object.assign(process.env, {
    TEST_PLACE: place,
    HOME: own('home'),
    TMPDIR: place,
    XDG_RUNTIME_DIR: own('user'),
    // What is compiled once serves all.
    XDG_CACHE_HOME: path.join(run, 'cache'),
    CLUSTERDECK_RUNTIME_DIR: own('running'),
    CLUSTERDECK_HOST_DIR: own('host'),
    GIT_CEILING_DIRECTORIES: run
  })
  process.chdir(own('work'))
}

/** Of a place; those of tempFolder() are beside them. */
export const PLACES = Object.freeze(['home', 'user', 'running', 'host', 'work'])

/** What a command needs to reach nothing of the user's, for tests that give it no other variables. */
export function ownVariables () {
  const { HOME, TMPDIR, XDG_RUNTIME_DIR, CLUSTERDECK_RUNTIME_DIR, CLUSTERDECK_HOST_DIR } = process.env
  return { HOME, TMPDIR, XDG_RUNTIME_DIR, CLUSTERDECK_RUNTIME_DIR, CLUSTERDECK_HOST_DIR }
}

type Agent = { constructor: new(options: object) => Agent }

// What a test has started is in its place already.
if (process.env.TEST_PLACE === undefined) leaveTheUser()
refuseHomelessCommands()
await keepNoConnection()

function leaveTheUser () {
  const home = os.homedir()
  for (const name of Object.keys(process.env))
    if (OF_THE_USER.test(name) && !OF_THE_MACHINE.test(name)) delete process.env[name]
  // How the registry is reached, npm knows from the user; and what it has fetched it need not fetch again.
  process.env.npm_config_userconfig ??= path.join(home, '.npmrc')
  process.env.npm_config_cache ??= path.join(home, '.npm')
  if (process.env.TEST_RUN === undefined) {
    const run = process.env.TEST_RUN = runFolder()
    process.once('exit', () => rmSync(run, { recursive: true, force: true }))
  }
  enterPlace()
}

/** Without HOME it would take the home folder of the account, and start the apps of the host there. */
function refuseHomelessCommands () {
  const prototype = ChildProcess.prototype as unknown as { spawn: (options: object) => number }
  const { spawn } = prototype
  prototype.spawn = function (options: { args?: string[], envPairs?: string[] }) {
    const { args = [], envPairs = [] } = options
    if (args.some((word) => OUR_COMMAND.test(word)) && !envPairs.some((pair) => pair.startsWith('HOME='))) {
      throw new Error(
        `a test starts clusterdeck without HOME, and so in the home folder of the account: ${args.join(' ')}`
      )
    }
    return spawn.call(this, options)
  }
}

/**
 * What has ended an idle connection has not lost the request that was just sent there: who tests that, has an agent of
 * its own. It does not help to ask for the end of the connection: then fetch() takes an answer that was cut for a whole
 * one.
 */
async function keepNoConnection () {
  http.globalAgent = new http.Agent()
  https.globalAgent = new https.Agent()
  // Before its first request there is no agent.
  await fetch('data:,')
  const shared = globalThis as unknown as Record<symbol, Agent | undefined>
  for (const name of ['undici.globalDispatcher.1', 'undici.globalDispatcher.2'].map(Symbol.for)) {
    if (shared[name]?.constructor.name === 'Agent')
      shared[name] = new shared[name].constructor({ keepAliveTimeout: 1, keepAliveMaxTimeout: 1,
        keepAliveTimeoutThreshold: Number.MAX_SAFE_INTEGER })
  }
}
