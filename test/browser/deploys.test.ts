import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilLive, useBrowser } from '../support/browser.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { startApp } from '../support/git-app.ts'
import { rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import { versionOf } from '../support/repository.ts'

const browser = useBrowser()

const app = (text: string) =>
  `import http from 'node:http'\nhttp.createServer((request, response) => response.end('${text}')).listen(0)\n`

rareTest(
  'a deploy on trial is paused, resumed and aborted, another one promoted, and the release before comes back, all by the page',
  async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const deck = await startDeckHere(t, releases.entry)
    await deck.until({ ready: 2 })
    const url = await deck.appUrl()
    await releases.add('second', app('second'))
    const strategy = { canary: { workers: 1, durationMs: 60_000 } }
    const deploy = () => deck.api('/rollouts', { method: 'POST', body: JSON.stringify({ kind: 'deploy', strategy }) })

    const page = await browser.visit(t, deck, '/deploys', { reducedMotion: 'reduce' })
    await page.getByText('No deploys yet').waitFor()

    await deploy()
    await page.locator('#rollout', { hasText: 'canary for another' }).waitFor()
    assert.equal(await page.locator('#rollout-title').innerText(), 'Running a canary of r2')
    await page.locator('#rollout .step', { hasText: 'Canary' }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.locator('#rollout', { hasText: 'Deploy of r2 paused' }).waitFor()
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.locator('#rollout', { hasText: 'Running a canary of r2' }).waitFor()
    assert.deepEqual(await page.audit(), [])
    await page.getByRole('button', { name: 'Abort' }).click()
    await page.getByRole('dialog', { name: 'Abort: Deploy of r2?' }).getByRole('button', { name: 'Abort' }).click()
    await page.locator('#rollout-1', { hasText: 'Rolled back' }).waitFor()
    await page.locator('#rollout-1 .row-link').click()
    await page.getByRole('heading', { name: 'Deploy of r2' }).waitFor()
    assert.deepEqual(
      (await page.locator('.moment strong').allInnerTexts()).filter((label) => !label.startsWith('Release')),
      ['Rollout started', 'Canary of 1 of 2 slots for a minute', 'Rollout paused', 'Rollout resumed',
        'Rollout rolling back', 'Rolled back']
    )
    assert.match(await page.locator('#slot-story-1').innerText(), /start: .* · canary: .* · rollback: /)
    await page.goto(`${deck.adminUrl}/deploys`)
    await untilLive(page)
    assert.match(await page.locator('#rollout-1').innerText(), /Aborted by the owner's token/)

    await deploy()
    await page.getByRole('button', { name: 'Promote' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Promote' }).click()
    await page.locator('#rollout-2', { hasText: 'Succeeded' }).waitFor()
    assert.equal(await (await fetch(url)).text(), 'second')

    await page.locator('#roll-back-to-r1').click()
    await page.getByRole('dialog').getByText(/^Roll back to r1\?$/).waitFor()
    assert.match(await page.getByRole('dialog').getByRole('row', { name: 'Folder' }).innerText(), /second.*first/)
    assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])
    await page.getByRole('dialog').getByLabel('Note').fill('not yet')
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
    await page.locator('#rollout-3', { hasText: /runs now.*Rollback to r1.*Succeeded/s }).waitFor()
    assert.match(await page.locator('.deploys-table tbody tr').first().innerText(), /“not yet”.*by the owner's token/s)
    await page.locator('#rollout-2').getByRole('button', { name: /^Redeploy r\d$/ }).waitFor()
    assert.notEqual(await (await fetch(url)).text(), 'second')
    assert.deepEqual(page.problems, [])
  }
)

rareTest('the dialog of a deploy shows what it would do, and waits for nothing before it deploys', async (t) => {
  const releases = await createReleases('answers-with-pid.js')
  const deck = await startDeckHere(t, releases.entry)
  await deck.until({ ready: 2 })
  await releases.add('second', app('second'))
  const page = await browser.visit(t, deck, '/', { reducedMotion: 'reduce' })
  const dialog = page.getByRole('dialog', { name: 'Roll out a new release?' })
  await page.getByRole('button', { name: 'Rolling deploy' }).click()
  await dialog.getByText('r2, new, after r1').waitFor()
  assert.match(await dialog.getByRole('region', { name: 'What it will do' }).innerText(),
    /Files\s+1 changed: .*Plan\s+2 workers, one at a time; if one fails, it rolls back/s)
  assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])

  await dialog.getByLabel('Canary workers').fill('1')
  await dialog.getByLabel('Canary time').selectOption('1 min')
  await dialog.getByLabel('Workers at a time').fill('100%')
  await dialog.getByLabel('If one fails').selectOption('wait for me')
  await dialog.getByText('2 workers, all at once, after a canary of 1 for a minute; if one fails, it waits for you')
    .waitFor()
  await dialog.getByText('As a command').click()
  await dialog.getByText('clusterdeck deploy --surge 100% --canary 1 --canary-time 60000ms --on-failure hold').waitFor()
  await dialog.getByLabel('Workers at a time').fill('many')
  await dialog.getByLabel('Note').focus()
  await dialog.getByText('strategy.surge: expected an integer from 1 to 256 or a share such as "25%", received "many"')
    .waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.reload()
  await untilLive(page)

  let goOn: (() => void) | undefined
  const held = new Promise((resolve) => {
    goOn = () => resolve(undefined)
  })
  const asked = new Promise((resolve) =>
    page.route('**/deploys/preview?*', async (route) => {
      resolve(undefined)
      await held
      await route.continue().catch(() => {})
    })
  )
  await page.getByRole('button', { name: 'Rolling deploy' }).click()
  await asked
  await dialog.getByText('Looking at what has changed…').waitFor()
  await dialog.getByLabel('Note').fill('at once')
  await dialog.getByRole('button', { name: 'Deploy' }).click()
  await deck.untilEvent(({ type, release }) => type === 'rollout.succeeded' && release === 'r2', 'the deploy')
  await dialog.waitFor({ state: 'hidden' })
  goOn?.()
  assert.deepEqual(page.problems, [])
})

test('a tag is chosen, its guessed build confirmed and deployed by the dialog as the commit that was shown, and its row leads to the output', async (t) => {
  const { deck, ask, repository } = await startApp(t)
  repository.git('branch', 'faster')
  const commit = repository.commit(versionOf('two'), 'Second')
  repository.git('tag', '-a', 'v2', '-m', 'The second version')
  assert.deepEqual(
    (await deck.api('/refs')).body.items.map((
      { name, kind, commit, subject }
    ) => [name, kind, commit === repository.git('rev-parse', 'main'), subject]).sort(),
    [['faster', 'branch', false, 'The first'], ['main', 'branch', true, 'Second'], ['v2', 'tag', true, 'Second']]
  )

  const page = await browser.visit(t, deck, '/', { reducedMotion: 'reduce' })
  const dialog = page.getByRole('dialog', { name: 'Roll out a new release?' })
  // Nothing moves under the hand when the preview comes.
  await page.route('**/deploys/preview?*', async (route) => {
    await dialog.getByLabel('Branch, tag or commit').waitFor()
    await route.continue()
  }, { times: 1 })
  await page.getByRole('button', { name: 'Rolling deploy' }).click()
  await dialog.locator('#deploy-refs option[value=v2]').waitFor({ state: 'attached' })
  await dialog.getByLabel('Branch, tag or commit').fill('no-such-branch')
  await dialog.getByLabel('Note').fill('by the page')
  await dialog.getByText('git: expected a branch, a tag or a commit of').waitFor()
  await dialog.getByLabel('Branch, tag or commit').fill('v2')
  await dialog.getByLabel('Note').focus()
  await dialog.getByText(`${commit.slice(0, 10)} on main “Second” by Ada`).waitFor()
  repository.commit(versionOf('three'), 'Third')
  repository.git('tag', '-f', 'v2')
  await dialog.getByText('As a command').click()
  await dialog.getByText('clusterdeck deploy --git v2 --note \'by the page\'').waitFor()
  assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])
  await dialog.getByRole('button', { name: 'Deploy' }).click()
  await page.getByText('hooks.build: expected a command, received none').waitFor()
  assert.equal((await deck.api('/releases')).body.items.length, 1)

  await dialog.getByLabel('Build it with npm ci, then npm run build').check()
  await dialog.getByRole('button', { name: 'Deploy' }).click()
  await page.waitForURL(/\/deploys#build-\d+$/)
  await page.locator('#rollout-1').getByText('Succeeded').waitFor()
  assert.match(await page.locator('#rollout-1').innerText(), /by the page[^]*by the owner's token/)
  await page.locator('#rollout-1').getByRole('link', { name: /^Built in/ }).click()
  await page.getByText('built two').waitFor()
  await page.getByRole('link', { name: 'Rollout 1' }).click()
  await page.getByRole('heading', { name: 'Deploy of r2 succeeded' }).waitFor()
  assert.equal(await ask(), 'two')
  assert.deepEqual(page.problems, [])
})
