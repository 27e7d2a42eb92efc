import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { tempFolder } from '../support/folder.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PATIENCE_MS = 90_000
const APP =
  'console.log(\'started\'); require(\'node:http\').createServer((_, answer) => answer.end(String(process.pid))).listen(0)'
const run = promisify(execFile)

test(
  'from its installation to a cluster with its page open, in an empty folder, by each command of the manual\'s first page',
  { timeout: 2 * PATIENCE_MS },
  async (t) => {
    const { install, start, act } = commandsOfFirstPage()
    const [prefix, cwd] = [tempFolder(), tempFolder()]
    const { PORT: _, ...outer } = process.env
    const env = { ...outer, PATH: `${path.join(prefix, 'bin')}:${outer.PATH}`, CLUSTERDECK_ADMIN_PORT: '0',
      npm_config_prefix: prefix, npm_config_offline: 'true', npm_config_audit: 'false' }
    const type = async (line: string) => (await run('sh', ['-c', line], { cwd, env, timeout: PATIENCE_MS })).stdout
    // Its packages are those of this checkout: to install them anew would take away what the other tests run with.
    await run('sh', ['-c', install.split(' && ').at(-1) ?? ''], { cwd: ROOT, env, timeout: PATIENCE_MS })

    writeFileSync(path.join(cwd, 'app.js'), APP)
    const master = spawn('sh', ['-c', `exec ${start}`], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(master, 'exit')
    t.after(() => {
      master.kill('SIGTERM')
    })
    let output = ''
    master.stdout.setEncoding('utf8').on('data', (text) => {
      output += text
    })
    while (!/app +http:\S+\n/.test(output)) await once(master.stdout, 'data')
    assert.match(await (await fetch(String(/app +(http:\S+)/.exec(output)?.[1]))).text(), /^\d+$/)

    const link = (await type('clusterdeck open')).trim()
    const signedIn = await fetch(link, { redirect: 'manual',
      headers: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' } })
    const page = await fetch(new URL('/', link), {
      headers: { cookie: String(signedIn.headers.get('set-cookie')).split(';')[0] }
    })
    assert.deepEqual([signedIn.status, page.status], [303, 200])
    assert.match(await page.text(), /<title>Overview · /)

    for (const line of act) {
      if (line.endsWith(' -f')) await begin(line)
      else assert.notEqual(await type(line), '', line)
    }
    assert.deepEqual(await exited, [0, null])

    /** One without an end, until it has something to say. */
    async function begin (line: string) {
      const child = spawn('sh', ['-c', `exec ${line}`], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
      const gone = once(child, 'exit')
      await Promise.race([once(child.stdout, 'data'), gone.then(() => assert.fail(`${line} has ended`))])
      child.kill('SIGINT')
      await gone
    }
  }
)

function commandsOfFirstPage () {
  const sections = readFileSync(path.join(ROOT, 'views', 'docs', 'getting-started.md'), 'utf8').split(/^## /m)
  const commandsOf = (title: string) => {
    const section = sections.find((text) => text.startsWith(`${title}\n`)) ?? assert.fail(title)
    return [...section.matchAll(/^ {4}(\S.*)$/gm)].map(([, line]) => line)
  }
  const [install, ...more] = commandsOf('Install')
  const [start] = commandsOf('Start your app')
  const act = commandsOf('See and control it')
  assert.deepEqual([more, act.at(-1)], [[], 'clusterdeck stop'])
  return { install, start, act }
}
