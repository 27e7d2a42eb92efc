import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { removeSocket } from '../../workers/socket-file.ts'
import { makeSocketFolder } from '../system/loan.ts'
import { loadNotifyCalls, type Close, type Datagram } from './notify-calls.ts'
import { loadSystemCalls } from './system-calls.ts'
import { errorText } from '../errors.ts'

/**
 * What a program says of itself. sd_notify(3) knows more: MAINPID means nothing here, as the process that was started
 * is the main one; nor do RELOADING, EXTEND_TIMEOUT_USEC and FDSTORE.
 */
export type Said = { isReady: boolean, isStopping: boolean, isAlive: boolean, status: string | undefined }
/**
 * `reason`: why nothing can be heard; null: it can; `close`: the next master may hear the program; `remove`: it has
 * ended
 */
export type NotifySocket = { file: string | null, fd: number | null, reason: string | null, close: () => void,
  remove: () => void }

const SOCKET = 'socket'
const BATCH = 8

/**
 * Makes a socket for a program that is about to start. Nobody but this user and root can send to it. `folder`: of ours.
 * Returns `file`: for NOTIFY_SOCKET.
 */
export function openNotifySocket (folder: string): NotifySocket {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return openNotifySocketAt(path.join(makeSocketFolder(folder, 'notify-', SOCKET), SOCKET))
  } catch (error) {
    // ENOSPC, EROFS and the like.
    return { file: null, fd: null, reason: errorText(error), close () {}, remove () {} }
  }
}

/** Makes it again, for a program that the master before has started. */
export function openNotifySocketAt (file: string): NotifySocket {
  const calls = loadSystemCalls() && loadNotifyCalls()
  removeSocket(file)
  const { fd = null, reason = null } = calls?.open(file) ?? { reason: 'it takes the optional package koffi' }
  let isOpen = fd !== null

  return { file: isOpen ? file : null, fd, reason, close, remove () {
    close()
    removeNotifySocket(file)
  } }

  function close () {
    if (isOpen) calls?.close(Number(fd))
    isOpen = false
  }
}

/** `file`: of a program that has ended */
export function removeNotifySocket (file: string) {
  removeSocket(file)
  rmSync(path.dirname(file), { recursive: true, force: true })
}

/** @returns some of what waits there */
export function takeBatch (socket: number, closeSent: Close): Datagram[] {
  const calls = loadNotifyCalls()
  const all = []
  for (let each = calls?.take(socket, closeSent); each;
    each = all.length < BATCH ? calls?.take(socket, closeSent) : null) all.push(each)
  return all
}

/** `text`: lines such as `READY=1` */
export function readSaid (text: string): Said {
  const lines = text.split('\n')
  return { isReady: lines.includes('READY=1'), isStopping: lines.includes('STOPPING=1'),
    isAlive: lines.includes('WATCHDOG=1'),
    status: lines.findLast((line) => line.startsWith('STATUS='))?.slice('STATUS='.length) }
}
