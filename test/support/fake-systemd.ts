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
      return calls.filter((line) => !/ (show|is-active|show-user) /.test(line))
    },

    /** `message`: null: from now on it works */
    failAt (verb: string, message: string | null) {
      if (message === null) rmSync(place(`fails-${verb}`), { force: true })
      else writeFileSync(place(`fails-${verb}`), `${message}\n`)
    },

    linger () {
      writeFileSync(place('linger'), 'yes\n')
    },

    get isActive () {
      return existsSync(place('active'))
    }
  }
}
