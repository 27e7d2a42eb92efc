import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { attempt } from '../../server/errors.ts'
import { CLI } from '../support/deck.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { app } from '../support/deploys.ts'
import { tempFolder } from '../support/folder.ts'
import { startApp } from '../support/git-app.ts'
import { serveHttp } from '../support/http-server.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import { versionOf } from '../support/repository.ts'

import type { DeckClient } from '../support/deck-client.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const ACTION = parse(readFileSync(path.join(ROOT, 'action.yml'), 'utf8'))
const EXPRESSION = /\$\{\{ ([\w.-]+) \}\}/g
const CONTEXT = { 'github.repository': 'acme/shop', 'github.sha': '5c07e7' }

/** Without it nobody can run the scripts. */
const skip = isThere('jq') && isThere('curl') ? false : 'curl and jq are not installed'

function isThere (program: string) {
  return attempt(() => Boolean(execFileSync('sh', ['-c', `command -v ${program}`]).length), false)
}

/** Plays the runner of GitHub: runs the steps of action.yml with these inputs. `more`: variables. */
async function runAction (given: Record<string, string>,
  more: Record<string, string> = {}
): Promise<{ code: number, outputs: Record<string, string>, summary: string, log: string }> {
  const folder = tempFolder()
  const inputs = Object.fromEntries(
    Object.entries<{ default?: string }>(ACTION.inputs).map((
      [name, { default: fallback = '' }]
    ) => [`inputs.${name}`, given[name] ?? resolve(fallback, CONTEXT)])
  )
  for (const name of Object.keys(given)) assert.ok(name in ACTION.inputs, name)
  const results: Record<string, string> = {}
  let [code, log, summary] = [0, '', '']
  for (const [index, step] of ACTION.runs.steps.entries()) {
    assert.doesNotMatch(step.run, /\$\{\{/, 'what is put into a script can be one')
    const file = (name: string) => path.join(folder, `${index}-${name}`)
    writeFileSync(file('script'), step.run)
    for (const name of ['output', 'summary']) writeFileSync(file(name), '')
    const [program, ...words] = step.shell.split(' ').map((word: string) => word.replace('{0}', file('script')))
    const env = Object.fromEntries(
      Object.entries<string>(step.env).map(([name, value]) => [name, resolve(value, inputs)])
    )
    const child = spawn(program, words, { cwd: folder,
      env: { PATH: process.env.PATH, TMPDIR: folder, GITHUB_ACTION_PATH: ROOT, GITHUB_OUTPUT: file('output'),
        GITHUB_STEP_SUMMARY: file('summary'), ...env, ...more } })
    const output = Promise.all([text(child.stdout), text(child.stderr)])
    const [exit] = await once(child, 'close')
    code ||= Number(exit)
    log += (await output).join('')
    summary += readFileSync(file('summary'), 'utf8')
    for (const line of readFileSync(file('output'), 'utf8').split('\n').filter(Boolean)) {
      const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? assert.fail(line)
      results[`steps.${step.id}.outputs.${name}`] = value
    }
  }
  const left = readdirSync(folder).filter((name) => !/^\d+-(script|output|summary)$/.test(name))
  assert.deepEqual(left, [], 'a key or a token may be in it')
  const outputs = Object.fromEntries(
    Object.entries<{ value: string }>(ACTION.outputs).map(([name, { value }]) => [name, resolve(value, results)])
  )
  return { code, outputs, summary, log }
}

function resolve (content: string, values: Record<string, string>) {
  return content.replace(EXPRESSION, (_, name) => values[name] ?? assert.fail(name))
}

async function startSite (t: TestContext, config: Record<string, unknown> = {},
  { entry = 'answers-with-pid.js', workers = 1 } = {})
{
  const file = path.join(tempFolder(), 'clusterdeck.config.json')
  writeFileSync(file, JSON.stringify({ drain: { idleGraceMs: 0 }, ...config }))
  const deck = await startReadyHere(t, entry, { workers, flags: ['--config', file] })
  const { body: { token } } = await deck.post('/tokens', { name: 'ci', role: 'operator' })
  return { deck, access: { url: deck.adminUrl, token } }
}

/** `folder`: with `bin` in it */
function program (folder: string, name: string, script: string) {
  mkdirSync(path.join(folder, 'bin'), { recursive: true })
  writeFileSync(path.join(folder, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

/** Inputs and variables of a deploy over SSH to a deck. `before`: what the shell that plays ssh does first */
function overSsh (deck: DeckClient, before = '') {
  const folder = tempFolder()
  program(folder, 'clusterdeck', `exec ${process.execPath} ${CLI} "$@" --data-dir ${deck.folder}`)
  // As sshd does with the last word of ssh.
  program(folder, 'ssh', `${before} for last; do :; done; exec sh -c "$last"`)
  return { folder, variables: { PATH: `${folder}/bin:${process.env.PATH}` },
    inputs: { 'ssh-host': 'web-1.example.com', 'ssh-user': 'deploy', 'ssh-key': 'a key',
      'ssh-known-hosts': 'web-1.example.com ssh-ed25519 AAAA' } }
}

describe('the action', { skip, concurrency: 2 }, () => {
  test('deploys, waits, and tells the release as outputs, summary and comment', async (t) => {
    const { deck, access } = await startSite(t)
    const comments: { url: string | undefined, authorization: string | undefined, body: string }[] = []
    const { url } = await serveHttp(t, async (request, response) => {
      comments.push({ url: request.url, authorization: request.headers.authorization,
        body: JSON.parse(await text(request)).body })
      response.end('{}')
    })
    const event = path.join(tempFolder(), 'event.json')
    const variables = { GITHUB_API_URL: url, GITHUB_REPOSITORY: 'acme/shop', GITHUB_SHA: '5c07e7',
      GITHUB_EVENT_PATH: event }
    writeFileSync(event, '{ "pull_request": { "number": 7 } }')
    const { code, outputs, summary, log } = await runAction({ ...access, 'comment-token': 'of-github' }, variables)
    assert.deepEqual([code, outputs], [0, { state: 'succeeded', rollout: '1', release: 'r2', reason: '' }], log)
    assert.equal(summary, '### Deploy: succeeded, r2\n')
    writeFileSync(event, '{}')
    await runAction({ ...access, 'comment-token': 'of-github' }, variables)
    assert.deepEqual(comments, [{ url: '/repos/acme/shop/issues/7/comments', authorization: 'Bearer of-github',
      body: '### Deploy: succeeded, r2\n' }, { url: '/repos/acme/shop/commits/5c07e7/comments',
      authorization: 'Bearer of-github', body: '### Deploy: succeeded, r3\n' }])
    const { body: rollout } = await deck.api('/rollouts/1')
    assert.deepEqual([rollout.actor, rollout.note, rollout.kind], ['ci', 'acme/shop@5c07e7', 'deploy'])
    assert.ok(!log.includes(access.token) && !log.includes('of-github'))
  })

  rareTest('deploys a commit, by the API and over SSH, with the output of its build in the log', async (t) => {
    const { deck, repository, ask, first } = await startApp(t, {
      config: {
        hooks: { build: { command: ['sh', '-c', 'node build.js && printf "::error::x\\r::warning::y\\nlast"'] } }
      }
    })
    const { body: { token } } = await deck.post('/tokens', { name: 'ci', role: 'operator' })
    const ssh = overSsh(deck)
    const ways = [['api', { url: deck.adminUrl, token }, {}], ['ssh', ssh.inputs, ssh.variables]] as [string,
      Record<string, string>, Record<string, string>][]
    for (const [at, [way, inputs, variables]] of ways.entries()) {
      const git = repository.commit(versionOf(way))
      const { code, outputs, log } = await runAction({ ...inputs, git }, variables)
      assert.deepEqual([code, outputs], [0, { state: 'succeeded', rollout: String(2 * at + 1),
        release: `r${2 * at + 2}`, reason: '' }], log)
      assert.equal(await ask(), way)
      assert.match(log,
        new RegExp(`^  commit ${git.slice(0, 10)} of main: [^]*^  built ${way}\n  ::error::x\n  ::warning::y\n  last`,
          'm'))
      assert.doesNotMatch(log, /^::/m)
      const { body: rollout } = await deck.api(`/rollouts/${Number(outputs.rollout)}`)
      assert.deepEqual([rollout.kind, rollout.note], ['deploy', 'acme/shop@5c07e7'])

      repository.commit(versionOf('broken', { build: 'throw new Error(\'no such module: totals\')' }))
      const broken = await runAction({ ...inputs, git: 'main' }, variables)
      assert.deepEqual([broken.code, broken.outputs.state, broken.outputs.rollout], [1, 'failed', ''], broken.log)
      assert.match(broken.log, /^ {2}.*no such module: totals/m)
      assert.match(broken.outputs.reason, /hooks\.build|exited with code 1/)
      assert.equal(await ask(), way)
      const unknown = await runAction({ ...inputs, git: 'nope' }, variables)
      assert.deepEqual([unknown.outputs.state, /expected a branch, a tag or a commit/.test(unknown.outputs.reason)], [
        way === 'api' ? 'refused' : 'failed',
        true
      ], unknown.log)
      // The same commit is the same release.
      assert.equal((await runAction({ ...inputs, git }, variables)).outputs.release, `r${2 * at + 2}`)
    }
    const both = await runAction({ url: deck.adminUrl, token, git: first, path: 'v2' })
    assert.deepEqual([both.code, both.outputs.reason], [2, 'expected either DEPLOY_GIT or DEPLOY_PATH'])
  })

  rareTest('fails with the reason if the deploy is rolled back', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const { deck, access } = await startSite(t, {}, { entry: releases.entry, workers: 2 })
    await releases.add('second',
      app('response.end()', 'if (process.env.CLUSTERDECK_SLOT === "2") throw new Error("no such table")'))
    const { code, outputs, summary, log } = await runAction(access)
    assert.deepEqual([code, outputs.state, outputs.release], [1, 'rolled-back', 'r2'], log)
    assert.match(outputs.reason, /no such table/)
    assert.ok(summary.startsWith(`### Deploy: rolled-back, r2\n\n~~~~~~~~\n${outputs.reason}\n`), summary)
    assert.equal((await deck.status()).release.id, 'r1')
  })

  test('takes inputs as text, and a reason that would be a command for the runner too', async (t) => {
    const folder = tempFolder()
    const { deck, access } = await startSite(t, {
      hooks: {
        beforeDeploy: {
          command: ['sh', '-c', 'printf \'\\n::set-output name=state::succeeded\\n~~~~~~~~\\n::error::x\'; exit 1']
        }
      }
    })
    const note = `"; touch ${folder}/one; $(touch ${folder}/two) \`touch ${folder}/three\` '\n\\ ü`
    const { code, outputs, summary, log } = await runAction({ ...access, note, surge: '50%', canary: '0',
      'on-failure': 'hold' })
    assert.deepEqual([code, outputs.state], [1, 'failed'], log)
    assert.match(outputs.reason, /^beforeDeploy exited with code 1 after .*: ::error::x$/)
    assert.doesNotMatch(log, /^\s*::/m)
    assert.equal(summary.match(/^~+$/gm)?.length, 2)
    const { body: rollout } = await deck.api('/rollouts/1')
    assert.deepEqual([rollout.note, rollout.strategy.onFailure], [note, 'hold'])
    assert.deepEqual(readdirSync(folder), [])
  })

  rareTest('fails if the deploy is refused, with the exit code of clusterdeck', async (t) => {
    const { access } = await startSite(t)
    for (const [inputs, code, reason] of [[{ ...access, path: '../other' }, 2, /releases\.root is not set/], [{
      ...access,
      surge: 'many'
    }, 2, /surge/], [{ ...access, token: 'another one' }, 3, /./], [{ ...access, app: 'a/../b' }, 2,
      /^DEPLOY_APP: expected the name of an app$/], [{ ...access, url: 'ops.example.com' }, 2,
      /^CLUSTERDECK_URL: expected an address/], [{ ...access, timeout: '5m' }, 2,
      /^DEPLOY_TIMEOUT: expected a number of seconds$/]] as [Record<string, string>, number, RegExp][])
    {
      const { code: received, outputs, log } = await runAction(inputs)
      assert.deepEqual([received, outputs.state, outputs.rollout], [code, 'refused', ''], log)
      assert.match(outputs.reason, reason)
    }
  })

  rareTest('fails if nobody answers, and if the time is up', async (t) => {
    const { code, outputs, log } = await runAction({ url: `http://127.0.0.1:${await freePort()}`, token: 'x' })
    assert.deepEqual([code, outputs.state], [5, 'unreachable'], log)
    assert.match(outputs.reason, /^nobody answers at http:\/\/127\.0\.0\.1:\d+: curl: \(7\)/)
    const { deck, access } = await startSite(t, { rollout: { minReadyMs: 600_000 } })
    const late = await runAction({ ...access, timeout: '0' })
    assert.deepEqual([late.code, late.outputs.state, late.outputs.rollout], [124, 'running', '1'], late.log)
    await deck.post('/rollouts/1/abort')
  })

  rareTest('deploys over SSH by the command there, whose shell reads no input as its own', async (t) => {
    const { deck } = await startSite(t)
    const { folder, inputs, variables } = overSsh(deck,
      'printf \'%s\\n\' "$@" > "${0%/bin/ssh}/words"; cat "$2" > "${0%/bin/ssh}/key";')
    const note = `'; touch ${folder}/one; $(touch ${folder}/two) "`
    const { code, outputs, log } = await runAction({ ...inputs, note }, variables)
    assert.deepEqual([code, outputs], [0, { state: 'succeeded', rollout: '1', release: 'r2', reason: '' }], log)
    assert.equal((await deck.api('/rollouts/1')).body.note, note)
    assert.equal(readFileSync(path.join(folder, 'key'), 'utf8'), 'a key\n')
    const words = readFileSync(path.join(folder, 'words'), 'utf8').split('\n')
    for (const word of ['StrictHostKeyChecking=yes', 'web-1.example.com', 'deploy'])
      assert.ok(words.includes(word), word)
    assert.deepEqual(['one', 'two'].filter((name) => existsSync(path.join(folder, name))), [])
    const refused = await runAction({ ...inputs, path: 'elsewhere' }, variables)
    assert.deepEqual([refused.code, refused.outputs.state], [2, 'refused'])
    assert.match(refused.outputs.reason, /releases\.root is not set/)
    program(folder, 'ssh', 'echo "ssh: connect to host web-1.example.com port 22: Connection refused" >&2; exit 255')
    const away = await runAction(inputs, variables)
    assert.deepEqual([away.code, away.outputs.state, away.outputs.reason], [5, 'unreachable',
      'ssh: connect to host web-1.example.com port 22: Connection refused'])
    for (const wrong of [{ 'ssh-host': '-oProxyCommand=x' }, { 'ssh-user': 'a b' }, { 'ssh-known-hosts': '' }]) {
      const { code: received, outputs: { state } } = await runAction({ ...inputs, ...wrong }, variables)
      assert.deepEqual([received, state], [2, 'refused'], JSON.stringify(wrong))
    }
  })

  test('has each of its inputs and outputs in the manual', () => {
    const page = readFileSync(path.join(ROOT, 'views', 'docs', 'ci.md'), 'utf8')
    for (const name of [...Object.keys(ACTION.inputs), ...Object.keys(ACTION.outputs)])
      assert.ok(page.includes(`\`${name}\``), name)
  })
})
