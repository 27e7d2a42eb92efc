import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { attempt } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'

/** They start the programs of others: what is below one of these is not its service. */
const STARTS_OTHERS =
  /^(sshd?|cron|crond|atd|anacron|user@.*|getty@.*|serial-getty@.*|docker|containerd|podman|snapd|.*-session|display-manager|gdm|sddm|lightdm)\.service$/

export type ServiceUnit = { name: string, isOfUser: boolean }

/**
 * The service that a process is the main one of, as far as the process table tells: it is in the control group of a
 * service, and systemd itself has started it. Returns null: it is none.
 */
export function unitOf (pid: number, read: (file: string) => string = readText): ServiceUnit | null {
  // ENOENT: it has ended, or this is another system.
  return attempt(() => {
    const unit = serviceOf(pid, read)
    return unit && isOfSystemd(parentOf(pid, read), read) ? unit : null
  })
}

/**
 * The service that a process belongs to: its main process has started this one, perhaps by others in between, such as
 * npm and a shell. Returns null: none, or one that starts the programs of others, such as sshd.
 */
export function unitAround (pid: number, read: (file: string) => string = readText): ServiceUnit | null {
  // ENOENT: it has ended, or this is another system.
  return attempt(() => {
    const unit = serviceOf(pid, read)
    if (!unit || STARTS_OTHERS.test(unit.name)) return null
    for (let at = pid; at > 1; at = parentOf(at, read)) {
      if (serviceOf(at, read)?.name !== unit.name) return null
      if (isOfSystemd(parentOf(at, read), read)) return unit
    }
    return null
  })
}

/** @returns why it could not be stopped */
export async function stopUnit (unit: ServiceUnit): Promise<string | null> {
  const [command, ...words] = stopWords(unit)
  return await new Promise((resolve) => {
    execFile(command, words,
      (error, _output, said) => resolve(error && (oneLine(said.trim()) || oneLine(error.message))))
  })
}

/** @returns the command that stops it */
export function stopWords ({ name, isOfUser }: ServiceUnit): string[] {
  return ['systemctl', ...(isOfUser ? ['--user'] : []), 'stop', name]
}

/** `unit`: whose app has moved into a host @returns for people */
export function disableText ({ name, isOfUser }: ServiceUnit): string {
  return `${name} must not start it again: systemctl ${isOfUser ? '--user ' : ''}disable ${name}`
}

/**
 * Returns the service in whose control group a process is; null: none.
 * @throws {NodeJS.ErrnoException}
 */
export function serviceOf (pid: number, read: (file: string) => string = readText): ServiceUnit | null {
  const [, group = ''] = /^(?:0:|\d+:name=systemd):(.*\.service.*)$/m.exec(read(`/proc/${pid}/cgroup`)) ?? []
  // Those of its workers may have groups below it, and the others then have one beside these: system/control-groups.js.
  const name = /\/([^/]+\.service)(?:\/clusterdeck)?$/.exec(group)?.[1]
  return name ? { name, isOfUser: /\/user@\d+\.service\//.test(group) } : null
}

function parentOf (pid: number, read: (file: string) => string) {
  return Number(/^PPid:\s*(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
}

function isOfSystemd (pid: number, read: (file: string) => string) {
  return pid > 0 && read(`/proc/${pid}/comm`).trim() === 'systemd'
}

function readText (file: string) {
  return readFileSync(file, 'utf8')
}
