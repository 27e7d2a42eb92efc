import { existsSync, mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { removeSocket } from '../../workers/socket-file.js'
import { makeSocketFolder } from '../system/loan.js'
import { watchDescriptor } from './descriptor-watch.js'
import { loadNotifyCalls } from './notify-calls.js'
import { loadSystemCalls } from './system-calls.js'

/**
 * What a program says of itself. sd_notify(3) knows more: MAINPID means nothing here, as the process that was started is the main one;
 * nor do RELOADING, EXTEND_TIMEOUT_USEC and FDSTORE.
 * @typedef {{ isReady: boolean, isStopping: boolean, isAlive: boolean, status: string | undefined }} Said
 *
 * @typedef {{ isOwn: (pid: number) => boolean, onSaid: (said: Said) => void }} Listener  `isOwn`: whether it is one of the program's processes
 * @typedef {{ file: string | null, reason: string | null, close: () => void, remove: () => void }} NotifySocket  `reason`: why nothing can be heard; null: it
 *   can; `close`: the next master may hear the program; `remove`: it has ended
 */

const SOCKET = 'socket'
const BATCH = 8
/** This long after a batch, the next one is read. */
const PAUSE_MS = 100

/**
 * Makes a socket for a program that is about to start. Nobody but this user and root can send to it.
 * @param {string} folder  of ours @param {Listener} listener @returns {NotifySocket} `file`: for NOTIFY_SOCKET
 */
export function openNotifySocket (folder, listener) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return hearNotifySocket(path.join(makeSocketFolder(folder, 'notify-', SOCKET), SOCKET), listener)
  } catch (/** @type {any} */ { message }) {
    // ENOSPC, EROFS and the like.
    return { file: null, reason: message, close () {}, remove () {} }
  }
}

/**
 * Hears what a program says of itself by sd_notify(3), also one that the master before has started.
 * @param {string} file @param {Listener} listener @returns {NotifySocket}
 */
export function hearNotifySocket (file, { isOwn, onSaid }) {
  const calls = loadSystemCalls() && loadNotifyCalls()
  removeSocket(file)
  const { fd, reason = null } = calls?.open(file) ?? { reason: 'it takes the optional package koffi' }
  if (!calls || fd === undefined) return { file: null, reason, close () {}, remove: () => removeNotifySocket(file) }
  let stop = watchDescriptor(fd, hear)
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  let isClosed = false

  return {
    file,
    reason: null,
    close,

    remove () {
      close()
      removeNotifySocket(file)
    }
  }

  function hear () {
    stop()
    timer = setTimeout(() => { stop = watchDescriptor(Number(fd), hear) }, PAUSE_MS).unref()
    for (const { pid, text } of takeBatch()) {
      // A sender that has ended meanwhile, such as systemd-notify in a script, was told the path by the program.
      if (!isClosed && (isOwn(pid) || !existsSync(`/proc/${pid}`))) onSaid(readSaid(text))
    }
  }

  /** @returns {import('./notify-calls.js').Datagram[]} */
  function takeBatch () {
    const all = []
    for (let each = calls?.take(Number(fd)); each; each = all.length < BATCH ? calls?.take(Number(fd)) : null) all.push(each)
    return all
  }

  function close () {
    if (isClosed) return
    isClosed = true
    clearTimeout(timer)
    stop()
    calls?.close(Number(fd))
  }
}

/** @param {string} file  of a program that has ended */
export function removeNotifySocket (file) {
  removeSocket(file)
  rmSync(path.dirname(file), { recursive: true, force: true })
}

/** @param {string} text  lines such as `READY=1` @returns {Said} */
function readSaid (text) {
  const lines = text.split('\n')
  return {
    isReady: lines.includes('READY=1'),
    isStopping: lines.includes('STOPPING=1'),
    isAlive: lines.includes('WATCHDOG=1'),
    status: lines.findLast((line) => line.startsWith('STATUS='))?.slice('STATUS='.length)
  }
}
