import dgram from 'node:dgram'
import os from 'node:os'
import { errorCode } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { loadPosix } from '../system/posix.js'
import { FACILITY, NEEDS_KOFFI, PRIORITIES, sendEach, TAKES_NOTHING } from './datagrams.js'

/** @typedef {import('./log-record.js').LogRecord} LogRecord */
/** @typedef {{ send: (batch: LogRecord[]) => Promise<import('./otlp-post.js').Outcome>, close: () => void }} Syslog */

export const LOCAL = 'local'

const SOCKET = '/dev/log'
const DEFAULT_PORT = 514
/** Many receivers cut longer messages. */
const MAX_TEXT_CHARS = 8000
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/**
 * Sends records to the syslog of this machine, or by UDP to another one.
 * @param {string} address  `local`, or `udp://host:port`
 * @param {{ app: string, load?: typeof loadPosix, path?: string }} parts
 * @returns {Syslog}
 */
export function createSyslog (address, { app, load = loadPosix, path = SOCKET }) {
  return address === LOCAL ? sendLocally({ app, load, path }) : sendByUdp(new URL(address), app)
}

/** @param {{ app: string, load: typeof loadPosix, path: string }} parts @returns {Syslog} */
function sendLocally ({ app, load, path }) {
  return {
    send: sendEach(async (record) => {
      const posix = load()
      if (!posix) return NEEDS_KOFFI
      return posix.sendDatagram(path, localMessage(record, app)) ? null : TAKES_NOTHING
    }),
    close () {}
  }
}

/** @param {URL} url @param {string} app @returns {Syslog} */
function sendByUdp ({ hostname, port }, app) {
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = dgram.createSocket(host.includes(':') ? 'udp6' : 'udp4').unref()
  socket.on('error', () => {})
  return {
    send: sendEach((record) => new Promise((resolve) => {
      socket.send(networkMessage(record, app), Number(port) || DEFAULT_PORT, host, (error) => resolve(error ? errorCode(error) ?? error.name : null))
    })),
    close () { socket.close() }
  }
}

/** Writes a record for another machine, as RFC 5424 defines it. @param {LogRecord} record @param {string} app */
export function networkMessage ({ at, level, text, event, attributes }, app) {
  return `${priorityOf(level)}1 ${new Date(at).toISOString()} ${nameOf(os.hostname(), 255)} ${nameOf(app, 48)} ${attributes['process.pid'] ?? '-'} ${nameOf(event ?? '-', 32)} - ${textOf(text)}`
}

/** Writes a record for this machine, as syslog(3) of the C library does. @param {LogRecord} record @param {string} app */
export function localMessage ({ at, level, text, attributes }, app) {
  const date = new Date(at)
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => String(each).padStart(2, '0')).join(':')
  const pid = attributes['process.pid'] === undefined ? '' : `[${attributes['process.pid']}]`
  return `${priorityOf(level)}${MONTHS[date.getMonth()]} ${String(date.getDate()).padStart(2)} ${time} ${nameOf(app, 32)}${pid}: ${textOf(text)}`
}

/** @param {LogRecord['level']} level */
function priorityOf (level) {
  return `<${FACILITY * 8 + PRIORITIES[level]}>`
}

/** @param {string} text @param {number} length @returns {string} without spaces, which would end the field */
function nameOf (text, length) {
  return text.replace(/[^!-~]/g, '_').slice(0, length) || '-'
}

/** @param {string} text */
function textOf (text) {
  return oneLine(text.slice(0, MAX_TEXT_CHARS))
}
