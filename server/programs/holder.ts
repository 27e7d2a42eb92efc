import path from 'node:path'
import { oneLine } from '../system/one-line.ts'
import { socketsOf } from '../system/open-sockets.ts'
import { linkAt, namesIn, statOf, textIn } from '../system/proc.ts'
import { idsIn } from '../system/process-owner.ts'
import { unitAround } from '../systemd/unit-of.ts'
import { listenersOf } from './listening-sockets.ts'

/** A process, as far as this user may know of it: proc(5). */
export type ProcessFacts = {
  pid: number,
  parent: number,
  user: number,
  /** that it executes; empty where that is not told */
  file: string,
  /** of its command line, or one text that it calls itself */
  words: string[],
  /** empty where that is not told */
  cwd: string,
  /** with which it was started; empty where that is not told */
  env: Record<string, string>
}

const MAX_TEXT = 100
/** The word behind such an option is the text of a program. */
const IS_CODE = /^(-[ceEp]|--eval|--print)(=|$)/
/** Such a word can be typed into a shell without quotes. */
const IS_PLAIN = /^[\w.@/-]+$/
const PARENT = 4
const PM2_DAEMON = /^PM2 v\S+: God Daemon \((.*)\)$/

/** Null: there is none */
export function factsOf (pid: number): ProcessFacts | null {
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

/** `environ`: `NAME=value`, each with a NUL behind it */
function variablesIn (environ: string): Record<string, string> {
  return Object.fromEntries(
    Array.from(environ.matchAll(/(?:^|\0)([^=\0]+)=([^\0]*)/g), ([, name, value]) => [name, value])
  )
}

/** @returns of all that there are */
function allProcesses (): number[] {
  return namesIn('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
}

/**
 * @param port of TCP on this machine
 * @returns the processes that listen there, as far as this user may know; null: none does
 */
export function holdersOfPort (port: number): number[] | null {
  const inodes = listenersOf('self').filter((each) => each.port === port).map(({ inode }) => inode)
  if (inodes.length === 0) return null
  return allProcesses().filter((pid) => {
    const held = socketsOf(pid)
    return inodes.some((inode) => held.has(inode))
  })
}

/** @returns the one of these that has started the others; of several, the oldest */
export function firstOf (pids: readonly number[]): number {
  const top = pids.filter((pid) => !pids.includes(factsOf(pid)?.parent ?? 0))
  return Math.min(...top.length > 0 ? top : pids)
}

/** @returns the folder of the PM2 that it is the daemon of */
export function pm2DaemonAt ({ words: [title] }: ProcessFacts): string | null {
  return PM2_DAEMON.exec(title)?.[1] ?? null
}

/** @returns what PM2 calls the apps whose sockets it may have; none: PM2 has not started it, or it has none */
export function namesInPm2 (facts: ProcessFacts): string[] {
  if (pm2DaemonAt(facts) !== null) return clusterAppsOf(facts.pid)
  const name = nameInPm2(facts)
  return name === null ? [] : [name]
}

/** @returns what PM2 calls it; null: PM2 has not started it */
function nameInPm2 ({ env }: ProcessFacts): string | null {
  if (env.pm_id !== undefined && env.PM2_HOME !== undefined) return env.name ?? null
  return /^\{"name":"([^"\\]*)"/.exec(env.pm2_env ?? '')?.[1] ?? null
}

/** `daemon`: of a PM2. Returns names of apps whose sockets it may have: those in cluster mode. */
export function clusterAppsOf (daemon: number): string[] {
  const names = allProcesses().flatMap((pid) => {
    const facts = factsOf(pid)
    return facts?.parent === daemon && facts.env.pm2_env !== undefined ? nameInPm2(facts) ?? [] : []
  })
  return [...new Set(names)]
}

/** @returns for people */
export function processText (facts: ProcessFacts): string {
  const { pid } = facts
  const name = nameInPm2(facts)
  const unit = unitAround(pid)
  const whose = [...(name === null ? [] : [`PM2 calls it ${name}`]),
    ...(unit === null || name !== null ? [] : [unit.name])]
  return oneLine(`${lineText(facts)} (${[`pid ${pid}`, ...whose].join(', ')})`)
}

/** Arguments may be secret, so of a command line only the beginning is told: as far as the program that it runs. */
function lineText ({ words: [command, ...rest] }: ProcessFacts) {
  const end = rest.findIndex((word) => !word.startsWith('-') || IS_CODE.test(word))
  const shown = end === -1 ? rest : rest.slice(0, IS_CODE.test(rest[end]) ? end : end + 1)
  const text = [rest.length > 0 ? path.basename(command) : command,
    ...shown.map((word) => word.replace(/^(-[^=]*)=.*$/s, '$1=…'))].join(' ')
  return `${text.slice(0, MAX_TEXT)}${text.length > MAX_TEXT || shown.length < rest.length ? ' …' : ''}`
}

/**
 * @param port of TCP on this machine
 * @returns who listens there, and the command that takes it over; null: nobody, or that is not told
 */
export function holderText (port: number): string | null {
  const pids = holdersOfPort(port) ?? []
  const facts = pids.length === 0 ? null : factsOf(firstOf(pids))
  if (!facts || pids.includes(process.pid)) return null
  const names = namesInPm2(facts)
  const who = pm2DaemonAt(facts) === null
    ? processText(facts)
    : oneLine(`PM2 (pid ${facts.pid}), which runs ${names.join(', ') || 'nothing that it tells'},`)
  if (pids.some((pid) => factsOf(pid)?.env.CLUSTERDECK_SLOT !== undefined)) return `${who} listens there`
  const words = names.length > 0
    ? `--pm2 ${names.length === 1 && IS_PLAIN.test(names[0]) ? names[0] : '<name>'}`
    : `--port ${port}`
  return `${who} listens there; without a gap, it is replaced by: clusterdeck adopt ${words}`
}
