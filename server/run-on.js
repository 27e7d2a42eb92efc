// Runs a file of clusterdeck on a Node that is new enough. Any Node from 14 on reads this file, so nothing newer is in
// it, and nothing is imported that has more.
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { isNewEnough, NEEDED } from './node-needed.js'

/** The Node with which the command was typed, on which its apps run, where no other one is asked for. */
export const TYPED_VARIABLE = 'CLUSTERDECK_TYPED_NODE'
const CHOSEN_VARIABLE = 'CLUSTERDECK_NODE'
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PINNED = `${ROOT}build/node/node_modules/node-${process.platform}-${process.arch}/bin/node`
/** Only a clone has the folder. */
const HOW_TO_GET = existsSync(`${ROOT}build/node`)
  ? `In ${ROOT} run "npm ci && npm install --global .", which installs one for clusterdeck alone.`
  : `Install a newer one, by nvm or as your system does, or name it by ${CHOSEN_VARIABLE}.`
/** As of a shell, for a program that is not there. */
const NOT_FOUND = 127
/** @type {NodeJS.Signals[]} */
const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT']
const OTHERS_WRITE = 0o022
const { geteuid = () => 0 } = process
/** Node ignores it, and what is ignored stays so. */
const SIGPIPE = 13
/** Node has its standard streams closed for other programs. */
const F_SETFD = 2

/**
 * Takes the place of this process: the same arguments, on a Node that is new enough.
 * @param {string} file absolute path @param {string[]} args @param {Record<string, string>} [more] variables
 */
export function runOnNewNode (file, args, more) {
  const found = findNode(process.env)
  if (found === null) {
    const needed = `it needs Node ${
      NEEDED.join('.')
    } or later, for security fixes and for its history, and this is ${process.version}`
    process.stderr.write(`clusterdeck: ${needed}. ${HOW_TO_GET} Your apps may stay on theirs.\n`)
    process.exitCode = NOT_FOUND
    return
  }
  const env = Object.assign({}, process.env, more)
  const words = [...process.execArgv, file, ...args]
  if (!process.connected) replaceProcess(found, words, env)
  runAsChild(found, words, env)
}

/**
 * @param {Record<string, string | undefined>} env
 * @returns {string} the file of the Node with which the command was typed, which may have handed over to this one
 */
export function typedNode (env) {
  return env[TYPED_VARIABLE] || process.execPath
}

/**
 * Finds a Node that is new enough: the one of this installation, the one that a variable names, or the newest of what
 * managers of versions have installed.
 * @param {Record<string, string | undefined>} env
 * @param {string} [pinned]
 * @returns {string | null} null: there is none
 */
export function findNode (env, pinned = PINNED) {
  if (isProgram(pinned)) return pinned
  const { [CHOSEN_VARIABLE]: chosen } = env
  if (chosen !== undefined && chosen !== '' && isProgram(chosen) && isTrusted(chosen)) return chosen
  const fits = installedNodes(env).filter(({ version }) => isNewEnough(version))
  return fits.length === 0 ? null : fits[0].file
}

/**
 * Lists what managers of versions have installed for this user: nvm, fnm, volta, mise, asdf.
 * @param {Record<string, string | undefined>} env
 * @returns {{ version: string, file: string }[]} the newest first
 */
export function installedNodes (env) {
  const home = env.HOME || os.homedir()
  const share = env.XDG_DATA_HOME || path.join(home, '.local/share')
  const places = [[path.join(env.NVM_DIR || path.join(home, '.nvm'), 'versions/node'), 'bin/node'], [
    path.join(env.FNM_DIR || path.join(share, 'fnm'), 'node-versions'),
    'installation/bin/node'
  ], [path.join(env.VOLTA_HOME || path.join(home, '.volta'), 'tools/image/node'), 'bin/node'], [
    path.join(env.MISE_DATA_DIR || path.join(share, 'mise'), 'installs/node'),
    'bin/node'
  ], [path.join(env.ASDF_DATA_DIR || path.join(home, '.asdf'), 'installs/nodejs'), 'bin/node']]
  return places.flatMap(([folder, inside]) =>
    namesIn(folder).flatMap((name) => {
      const [, version] = /^v?(\d+\.\d+\.\d+)$/.exec(name) || []
      const file = path.join(folder, name, inside)
      return version !== undefined && isProgram(file) && isTrusted(file) ? [{ version, file }] : []
    })
  ).sort((one, other) => other.version.localeCompare(one.version, undefined, { numeric: true }))
}

/** @param {string} folder @returns {string[]} */
function namesIn (folder) {
  try {
    return readdirSync(folder)
  } catch (_error) {
    // ENOENT: this manager is not used.
    return []
  }
}

/** @param {string} file */
export function isProgram (file) {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch (_error) {
    return false
  }
}

/**
 * Tells whether nobody but root and this user can have made a file, or a folder above it, what it is.
 * @param {string} file that is there
 */
function isTrusted (file) {
  for (let place = realpathSync(file);; place = path.dirname(place)) {
    const { uid, mode } = lstatSync(place)
    const isShared = (mode & 0o1000) !== 0 && place !== file
    if ((uid !== 0 && uid !== geteuid()) || (mode & OTHERS_WRITE && !isShared)) return false
    if (place === path.dirname(place)) return true
  }
}

/**
 * Only returns where this Node cannot do it. From Node 22.15 on it can; before, koffi calls execve(2).
 * @param {string} file @param {string[]} words @param {Record<string, string | undefined>} env
 */
function replaceProcess (file, words, env) {
  if (process.execve) process.execve(file, [file, ...words], env)
  try {
    const koffi = createRequire(import.meta.url)('koffi')
    const libc = koffi.load(null)
    libc.func('void *signal(int signal, void *handler)')(SIGPIPE, null)
    const fcntl = libc.func('int fcntl(int fd, int command, ...)')
    for (const fd of [0, 1, 2]) fcntl(fd, F_SETFD, 'int', 0)
    libc.func('int execve(const char *file, const char **args, const char **env)')(file, [file, ...words, null], [
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
      null
    ])
  } catch (_error) {
    // It is not installed, or not for this Node.
  }
}

/** @param {string} file @param {string[]} words @param {Record<string, string | undefined>} env */
function runAsChild (file, words, env) {
  const child = spawn(file, words, { stdio: process.connected ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
    env })
  for (const signal of PASSED_ON)
    process.on(signal, () => {
      child.kill(signal)
    })
  child.on('error', (error) => {
    throw error
  })
  child.on('exit', (code, signal) => {
    if (signal === null) return process.exit(code === null ? 1 : code)
    const name = /** @type {NodeJS.Signals} */ (signal)
    process.removeAllListeners(name)
    process.kill(process.pid, name)
  })
}
