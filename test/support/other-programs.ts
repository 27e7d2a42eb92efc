import path from 'node:path'
import { FIXTURES } from './deck.ts'
import { withoutNativeCalls } from './service-manager.ts'

/** Why no program of another language can be heard here; false: it can. */
export const withoutOtherPrograms = process.platform === 'linux'
  ? withoutNativeCalls
  : 'the kernel hears no program there'

/**
 * A command that clusterdeck takes for a program of another language: it does not reach into the Node that a shell
 * starts. `file`: of JavaScript: the name of a fixture, or an absolute path.
 */
export function asOtherProgram (file: string) {
  return ['sh', '-c', `exec env -u NODE_OPTIONS "${process.execPath}" "${path.resolve(FIXTURES, file)}"`]
}
