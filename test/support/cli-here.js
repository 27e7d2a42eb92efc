import { Writable } from 'node:stream'
import { runCommandLine } from '../../server/command-line.js'
import './folder.js'

/** @typedef {{ stdout: string, stderr: string }} Output */

/**
 * Runs `clusterdeck` with any arguments to its end, as runCli() does, but in this very process and without a keeper.
 * @param {string[]} args @param {{ env?: Record<string, string | undefined>, cwd?: string, output?: Output }} [options] `output`: is filled meanwhile
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
export async function runCliHere (args, { env = {}, cwd = process.cwd(), output = { stdout: '', stderr: '' } } = {}) {
  const code = await runCommandLine(args, { stdout: collect(output, 'stdout'), stderr: collect(output, 'stderr'), env: { ...process.env, ...env }, cwd })
  return { code, ...output }
}

/** @param {Output} output @param {keyof Output} name @returns {any} a stream that is no terminal */
function collect (output, name) {
  return new Writable({
    write (chunk, _encoding, done) {
      output[name] += chunk
      done()
    }
  })
}
