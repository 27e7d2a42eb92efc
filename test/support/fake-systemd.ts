import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from './folder.ts'

/** What a service manager does with the one service that it knows, as far as its command line shows it. */
const SYSTEMCTL = `#!/bin/sh
cd "$(dirname "$0")"
echo "$(basename "$0") $*" >> calls
if [ "$1" = --user ]; then shift; fi
if [ -e "fails-$1" ]; then cat "fails-$1" >&2; exit 1; fi
case "$1" in
  show) cat shown 2>/dev/null || true ;;
  list-jobs) cat jobs 2>/dev/null || true ;;
  show-user) cat linger 2>/dev/null || echo no ;;
  is-active) if [ -e active ]; then echo active; else echo inactive; exit 3; fi ;;
  start | restart) touch active ;;
  disable) rm -f active ;;
esac
`

/** A `systemctl` and a `loginctl` that write down what they are told. */
export function fakeSystemd () {
  const folder = tempFolder()
  const place = (name: string) => path.join(folder, name)
  for (const name of ['systemctl', 'loginctl']) {
    writeFileSync(place(name), SYSTEMCTL)
    chmodSync(place(name), 0o755)
  }
  return {
    /** Where programs are looked for. */
    path: `${folder}:${process.env.PATH}`,

    /** Since the last time, without what only asks. */
    calls (): string[] {
      const calls = existsSync(place('calls')) ? readFileSync(place('calls'), 'utf8').trimEnd().split('\n') : []
      rmSync(place('calls'), { force: true })
      return calls.filter((line) => !/ (show|is-active|show-user|list-jobs) /.test(line))
    },

    /** `message`: null: from now on it works */
    failAt (verb: string, message: string | null) {
      if (message === null) rmSync(place(`fails-${verb}`), { force: true })
      else writeFileSync(place(`fails-${verb}`), `${message}\n`)
    },

    /** The service is being stopped. `job`: why; `stored`: how many of its sockets are kept */
    beginStop (job: 'stop' | 'restart', { stored }: { stored: number }) {
      writeFileSync(place('jobs'), `1234 shop.service ${job} running\n`)
      writeFileSync(place('shown'), `NFileDescriptorStore=${stored}\n`)
    },

    linger () {
      writeFileSync(place('linger'), 'yes\n')
    },

    get isActive () {
      return existsSync(place('active'))
    }
  }
}

/** Why tests that ask systemd itself are skipped; false where they are not. */
export const withoutAnalyze = spawnSync('systemd-analyze', ['--version'], { stdio: 'ignore' }).status === 0
  ? false
  : 'there is no systemd-analyze here'

/** `files`: units, in the folder `cwd`. Returns what systemd itself has against them. */
export function analyze (files: string[], { cwd, flags = [] }: { cwd: string, flags?: string[] }): string[] {
  const { status, stderr } = spawnSync('systemd-analyze', [...flags, 'verify', ...files.map((file) => `./${file}`)], {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, XDG_RUNTIME_DIR: tempFolder() }
  })
  const lines = stderr.split('\n').filter((line) => files.some((file) => line.includes(file)))
  return [
    ...status === 0 ? [] : [`it ended with ${status}`],
    // An old systemd knows one setting not, and does what it says.
    ...lines.filter((line) => !line.includes('Unknown key \'FileDescriptorStorePreserve\''))
  ]
}
