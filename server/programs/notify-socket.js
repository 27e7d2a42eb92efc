import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { removeSocket } from '../../workers/socket-file.js'
import { makeSocketFolder } from '../system/loan.js'
import { loadNotifyCalls } from './notify-calls.js'
import { loadSystemCalls } from './system-calls.js'

/**
 * What a program says of itself. sd_notify(3) knows more: MAINPID means nothing here, as the process that was started is the main one;
 * nor do RELOADING, EXTEND_TIMEOUT_USEC and FDSTORE.
 * @typedef {{ isReady: boolean, isStopping: boolean, isAlive: boolean, status: string | undefined }} Said
 *
 * @typedef {{ file: string | null, fd: number | null, reason: string | null, close: () => void, remove: () => void }} NotifySocket
 *   `reason`: why nothing can be heard; null: it can; `close`: the next master may hear the program; `remove`: it has ended
 */

const SOCKET = 'socket'
const BATCH = 8

/**
 * Makes a socket for a program that is about to start. Nobody but this user and root can send to it.
 * @param {string} folder  of ours @returns {NotifySocket} `file`: for NOTIFY_SOCKET
 */
export function openNotifySocket (folder) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return openNotifySocketAt(path.join(makeSocketFolder(folder, 'notify-', SOCKET), SOCKET))
  } catch (/** @type {any} */ { message }) {
    // ENOSPC, EROFS and the like.
    return { file: null, fd: null, reason: message, close () {}, remove () {} }
  }
}

/** Makes it again, for a program that the master before has started. @param {string} file @returns {NotifySocket} */
export function openNotifySocketAt (file) {
  const calls = loadSystemCalls() && loadNotifyCalls()
  removeSocket(file)
  const { fd = null, reason = null } = calls?.open(file) ?? { reason: 'it takes the optional package koffi' }
  let isOpen = fd !== null

  return {
    file: isOpen ? file : null,
    fd,
    reason,
    close,

    remove () {
      close()
      removeNotifySocket(file)
    }
  }

  function close () {
    if (isOpen) calls?.close(Number(fd))
    isOpen = false
  }
}

/** @param {string} file  of a program that has ended */
export function removeNotifySocket (file) {
  removeSocket(file)
  rmSync(path.dirname(file), { recursive: true, force: true })
}

/** @param {number} socket @param {import('./notify-calls.js').Close} closeSent @returns {import('./notify-calls.js').Datagram[]} some of what waits there */
export function takeBatch (socket, closeSent) {
  const calls = loadNotifyCalls()
  const all = []
  for (let each = calls?.take(socket, closeSent); each; each = all.length < BATCH ? calls?.take(socket, closeSent) : null) all.push(each)
  return all
}

/** @param {string} text  lines such as `READY=1` @returns {Said} */
export function readSaid (text) {
  const lines = text.split('\n')
  return {
    isReady: lines.includes('READY=1'),
    isStopping: lines.includes('STOPPING=1'),
    isAlive: lines.includes('WATCHDOG=1'),
    status: lines.findLast((line) => line.startsWith('STATUS='))?.slice('STATUS='.length)
  }
}
