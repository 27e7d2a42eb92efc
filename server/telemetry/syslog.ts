import dgram from 'node:dgram'
import os from 'node:os'
import { errorCode } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { loadPosix } from '../system/posix.ts'
import { FACILITY, NEEDS_KOFFI, PRIORITIES, sendEach, TAKES_NOTHING } from './datagrams.ts'
import type { LogRecord } from './log-record.ts'
import type { Outcome } from './otlp-post.ts'

type Syslog = { send: (batch: LogRecord[]) => Promise<Outcome>, close: () => void }

export const LOCAL = 'local'

const SOCKET = '/dev/log'
const DEFAULT_PORT = 514
/** Many receivers cut longer messages. */
const MAX_TEXT_CHARS = 8000
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Sends records to the syslog of this machine, or by UDP to another one. `address`: `local`, or `udp://host:port`. */
export function createSyslog (address: string,
  { app, load = loadPosix, path = SOCKET }: { app: string, load?: typeof loadPosix, path?: string }): Syslog
{
  return address === LOCAL ? sendLocally({ app, load, path }) : sendByUdp(new URL(address), app)
}

function sendLocally ({ app, load, path }: { app: string, load: typeof loadPosix, path: string }): Syslog {
  return { send: sendEach(async (record) => {
    const posix = load()
    if (!posix) return NEEDS_KOFFI
    return posix.sendDatagram(path, localMessage(record, app)) ? null : TAKES_NOTHING
  }), close () {} }
}

function sendByUdp ({ hostname, port }: URL, app: string): Syslog {
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = dgram.createSocket(host.includes(':') ? 'udp6' : 'udp4').unref()
  socket.on('error', () => {})
  return { send: sendEach((record) =>
    new Promise((resolve) => {
      socket.send(networkMessage(record, app), Number(port) || DEFAULT_PORT, host,
        (error) => resolve(error ? errorCode(error) ?? error.name : null))
    })
  ), close () {
    socket.close()
  } }
}

/** Writes a record for another machine, as RFC 5424 defines it. */
export function networkMessage ({ at, level, text, event, attributes }: LogRecord, app: string) {
  return `${priorityOf(level)}1 ${new Date(at).toISOString()} ${nameOf(os.hostname(), 255)} ${nameOf(app, 48)} ${
    attributes['process.pid'] ?? '-'
  } ${nameOf(event ?? '-', 32)} - ${textOf(text)}`
}

/** Writes a record for this machine, as syslog(3) of the C library does. */
export function localMessage ({ at, level, text, attributes }: LogRecord, app: string) {
  const date = new Date(at)
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => String(each).padStart(2, '0'))
    .join(':')
  const pid = attributes['process.pid'] === undefined ? '' : `[${attributes['process.pid']}]`
  return `${priorityOf(level)}${MONTHS[date.getMonth()]} ${String(date.getDate()).padStart(2)} ${time} ${
    nameOf(app, 32)
  }${pid}: ${textOf(text)}`
}

function priorityOf (level: LogRecord['level']) {
  return `<${FACILITY * 8 + PRIORITIES[level]}>`
}

/** @returns without spaces, which would end the field */
function nameOf (text: string, length: number): string {
  return text.replace(/[^!-~]/g, '_').slice(0, length) || '-'
}

function textOf (text: string) {
  return oneLine(text.slice(0, MAX_TEXT_CHARS))
}
