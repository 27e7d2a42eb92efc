import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { marked } from 'marked'
import { get } from '../support/asking.ts'
import { startReady } from '../support/deck.ts'
import { wordsOf } from '../support/examples.ts'
import { tempFolder } from '../support/folder.ts'
import { openFreshConnections } from '../support/load.ts'
import { withoutOtherPrograms } from '../support/other-programs.ts'
import { freePort } from '../support/ports.ts'
import { rareOnly } from '../support/rare.ts'

const PAGE = new URL('../../views/docs/programs.md', import.meta.url)
/** A block that is a file begins with its name. */
const FILE = /^(?:#|\/\/) ([\w-]+\.\w+)\n/
const blocks = marked.lexer(readFileSync(PAGE, 'utf8')).flatMap((token) => token.type === 'code' ? [token.text] : [])
const files = blocks.filter((text) => FILE.test(text) && !text.includes('export default'))
const lines = blocks.filter((text) => !FILE.test(text)).flatMap((text) => text.split('\n'))
const starts = lines.filter((line) => line.startsWith('clusterdeck start '))
const cwd = tempFolder()
for (const text of files) writeFileSync(path.join(cwd, String(FILE.exec(text)?.[1])), text)

describe('examples of the page on other programs', { skip: withoutOtherPrograms }, () => {
  test('all are started here', () => {
    assert.equal(files.length, 6)
    assert.equal(starts.length, 7)
  })

  for (const line of starts) {
    // The first one takes nothing but Python.
    const isRare = line !== starts[0] && rareOnly
    test(`${line}: it answers, and no request fails in a deploy`, { skip: isRare || lacks(line) }, async (t) => {
      build(line)
      const port = await freePort()
      const { flags, args } = typed(line, port)
      const isAlone = line.includes('stop-first')
      const deck = await startReady(t, null, { workers: isAlone ? 1 : 2, cwd, flags, args,
        env: { PORT: String(port) } })
      const load = openFreshConnections(t, `http://127.0.0.1:${port}/`, { perSecond: 20 })
      await load.untilAnswered(10)
      await deck.rollout('deploy')
      await load.checkNoneLost()
      const pids = (await deck.status()).workers.map(({ pid }) => pid)
      const [, answered] = /^hello from pid (\d+)\n$/.exec(await get(`http://127.0.0.1:${port}/`)) ?? []
      assert.ok(pids.includes(Number(answered)))
      assert.equal((await deck.stop()).code, 0)
    })
  }
})

function typed (line: string, port: number): { flags: string[], args: string[] } {
  const words = wordsOf(line.replace('8000', String(port))).slice(1)
  const end = words.includes('--') ? words.indexOf('--') : words.length
  const at = words.indexOf('--workers')
  const flags = words.slice(0, end)
  if (at !== -1) flags.splice(at, 2)
  return { flags, args: words.slice(end + 1) }
}

/** @returns what it takes that is not here */
function lacks (line: string): string | false {
  if (line.includes('./server')) return !runs('go', 'version') && 'go is not here'
  const [program, ...args] = line.replace(/^.* -- /, '').split(' ')
  if (args.includes('uvicorn')) return !runs(program, '-c', 'import uvicorn') && 'uvicorn is not here'
  if (program === 'java') return !runs('javac', '-version') && 'javac is not here'
  return !runs(program, '--version') && `${program} is not here`
}

function runs (program: string, ...args: string[]) {
  return spawnSync(program, args).status === 0
}

function build (line: string) {
  const command = lines.find((each) =>
    each.startsWith(line.includes('./server') ? 'go build ' : line.includes('java ') ? 'javac ' : '#')
  )
  if (command === undefined) return
  const { status, stderr } = spawnSync(command, { cwd, shell: true, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
}
