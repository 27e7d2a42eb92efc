import { readFileSync } from 'node:fs'
import path from 'node:path'

/**
 * The service that a process is the main one of, as far as the process table tells: it is in the control group of a service, and
 * systemd itself has started it.
 * @param {number} pid @param {(file: string) => string} [read]
 * @returns {{ name: string, isOfUser: boolean } | null} null: it is none
 */
export function unitOf (pid, read = (file) => readFileSync(file, 'utf8')) {
  try {
    const [, group = ''] = /^0::(.*)$/m.exec(read(`/proc/${pid}/cgroup`)) ?? []
    const name = path.basename(group)
    const [, parent] = /^PPid:\s*(\d+)$/m.exec(read(`/proc/${pid}/status`)) ?? []
    if (!name.endsWith('.service') || read(`/proc/${parent}/comm`).trim() !== 'systemd') return null
    return { name, isOfUser: /\/user@\d+\.service\//.test(group) }
  } catch {
    // ENOENT: it has ended, or this is another system.
    return null
  }
}
