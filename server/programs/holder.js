import path from 'node:path'
import { oneLine } from '../system/one-line.js'
import { socketsOf } from '../system/open-sockets.js'
import { linkAt, namesIn, statOf, textIn } from '../system/proc.js'
import { idsIn } from '../system/process-owner.js'
import { unitAround } from '../systemd/unit-of.js'
import { listenersOf } from './listening-sockets.js'

/**
 * A process, as far as this user may know of it: proc(5).
 * @typedef {object} ProcessFacts
 * @property {number} pid
 * @property {number} parent
 * @property {number} user
 * @property {string} file  that it executes; empty where that is not told
 * @property {string[]} words  of its command line, or one text that it calls itself
 * @property {string} cwd  empty where that is not told
 * @property {Record<string, string>} env  with which it was started; empty where that is not told
 */

const MAX_TEXT = 100
/** The word behind such an option is the text of a program. */
const IS_CODE = /^(-[ceEp]|--eval|--print)(=|$)/
/** Such a word can be typed into a shell without quotes. */
const IS_PLAIN = /^[\w.@/-]+$/
const PARENT = 4
const PM2_DAEMON = /^PM2 v\S+: God Daemon \((.*)\)$/

/** @param {number} pid @returns {ProcessFacts | null} null: there is none */
export function factsOf (pid) {
  const fields = statOf(pid)
  if (!fields) return null
  const line = textIn(`/proc/${pid}/cmdline`)
  return {
    pid,
    parent: Number(fields[PARENT]),
    user: idsIn(textIn(`/proc/${pid}/status`)).users[0] ?? -1,
    file: linkAt(`/proc/${pid}/exe`),
    // A process that gives itself a title fills what is left of its command line.
    words: /\0{2,}$/.test(line) ? [line.replace(/\0+$/, '').trim()] : line.replace(/\0$/, '').split('\0'),
    cwd: linkAt(`/proc/${pid}/cwd`),
    env: variablesIn(textIn(`/proc/${pid}/environ`))
  }
}

/** @param {string} environ  `NAME=value`, each with a NUL behind it @returns {Record<string, string>} */
function variablesIn (environ) {
  return Object.fromEntries(Array.from(environ.matchAll(/(?:^|\0)([^=\0]+)=([^\0]*)/g), ([, name, value]) => [name, value]))
}

/** @returns {number[]} of all that there are */
function allProcesses () {
  return namesIn('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
}

/** @param {number} port of TCP on this machine @returns {number[] | null} the processes that listen there, as far as this user may know; null: none does */
export function holdersOfPort (port) {
  const inodes = listenersOf('self').filter((each) => each.port === port).map(({ inode }) => inode)
  if (inodes.length === 0) return null
  return allProcesses().filter((pid) => {
    const held = socketsOf(pid)
    return inodes.some((inode) => held.has(inode))
  })
}

/** @param {readonly number[]} pids @returns {number} the one of these that has started the others; of several, the oldest */
export function firstOf (pids) {
  const top = pids.filter((pid) => !pids.includes(factsOf(pid)?.parent ?? 0))
  return Math.min(...top.length > 0 ? top : pids)
}

/** @param {ProcessFacts} facts @returns {string | null} the folder of the PM2 that it is the daemon of */
export function pm2DaemonAt ({ words: [title] }) {
  return PM2_DAEMON.exec(title)?.[1] ?? null
}

/** @param {ProcessFacts} facts @returns {string[]} what PM2 calls the apps whose sockets it may have; none: PM2 has not started it, or it has none */
export function namesInPm2 (facts) {
  if (pm2DaemonAt(facts) !== null) return clusterAppsOf(facts.pid)
  const name = nameInPm2(facts)
  return name === null ? [] : [name]
}

/** @param {ProcessFacts} facts @returns {string | null} what PM2 calls it; null: PM2 has not started it */
function nameInPm2 ({ env }) {
  if (env.pm_id !== undefined && env.PM2_HOME !== undefined) return env.name ?? null
  return /^\{"name":"([^"\\]*)"/.exec(env.pm2_env ?? '')?.[1] ?? null
}

/** @param {number} daemon of a PM2 @returns {string[]} names of apps whose sockets it may have: those in cluster mode */
export function clusterAppsOf (daemon) {
  const names = allProcesses().flatMap((pid) => {
    const facts = factsOf(pid)
    return facts?.parent === daemon && facts.env.pm2_env !== undefined ? nameInPm2(facts) ?? [] : []
  })
  return [...new Set(names)]
}

/** @param {ProcessFacts} facts @returns {string} for people */
export function processText (facts) {
  const { pid } = facts
  const name = nameInPm2(facts)
  const unit = unitAround(pid)
  const whose = [...(name === null ? [] : [`PM2 calls it ${name}`]), ...(unit === null || name !== null ? [] : [unit.name])]
  return oneLine(`${lineText(facts)} (${[`pid ${pid}`, ...whose].join(', ')})`)
}

/**
 * Arguments may be secret, so of a command line only the beginning is told: as far as the program that it runs.
 * @param {ProcessFacts} facts
 */
function lineText ({ words: [command, ...rest] }) {
  const end = rest.findIndex((word) => !word.startsWith('-') || IS_CODE.test(word))
  const shown = end === -1 ? rest : rest.slice(0, IS_CODE.test(rest[end]) ? end : end + 1)
  const text = [rest.length > 0 ? path.basename(command) : command, ...shown.map((word) => word.replace(/^(-[^=]*)=.*$/s, '$1=…'))].join(' ')
  return `${text.slice(0, MAX_TEXT)}${text.length > MAX_TEXT || shown.length < rest.length ? ' …' : ''}`
}

/**
 * @param {number} port of TCP on this machine
 * @returns {string | null} who listens there, and the command that takes it over; null: nobody, or that is not told
 */
export function holderText (port) {
  const pids = holdersOfPort(port) ?? []
  const facts = pids.length === 0 ? null : factsOf(firstOf(pids))
  if (!facts || pids.includes(process.pid)) return null
  const names = namesInPm2(facts)
  const who = pm2DaemonAt(facts) === null ? processText(facts) : oneLine(`PM2 (pid ${facts.pid}), which runs ${names.join(', ') || 'nothing that it tells'},`)
  if (pids.some((pid) => factsOf(pid)?.env.CLUSTERDECK_SLOT !== undefined)) return `${who} listens there`
  const words = names.length > 0 ? `--pm2 ${names.length === 1 && IS_PLAIN.test(names[0]) ? names[0] : '<name>'}` : `--port ${port}`
  return `${who} listens there; without a gap, it is replaced by: clusterdeck adopt ${words}`
}
