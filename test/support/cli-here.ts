import { Writable } from 'node:stream'
import { runCommandLine } from '../../server/command-line.ts'
import './folder.ts'

type Output = { stdout: string, stderr: string }

/**
 * Runs `clusterdeck` with any arguments to its end, as runCli() does, but in this very process and without a keeper.
 * `output`: is filled meanwhile.
 */
export async function runCliHere (args: string[],
  { env = {}, cwd = process.cwd(), output = { stdout: '', stderr: '' } }: { env?: Record<string, string | undefined>,
    cwd?: string, output?: Output } = {}): Promise<{ code: number, stdout: string, stderr: string }>
{
  const code = await runCommandLine(args, { stdout: collect(output, 'stdout'), stderr: collect(output, 'stderr'),
    env: { ...process.env, ...env }, cwd })
  return { code, ...output }
}

/** @returns a stream that is no terminal */
function collect (output: Output, name: keyof Output) {
  const stream = new Writable({ write (chunk, _encoding, done) {
    output[name] += chunk
    done()
  } })
  return stream as Writable & NodeJS.WriteStream
}
