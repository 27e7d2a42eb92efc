import path from 'node:path'
import { RULES_OF_COLOUR, type WatchedPage, type openBrowser } from '../support/browser.ts'
import { subjectsOf, type Ask, type Place } from '../support/places.ts'

export type Picture = { state: string, place: string, width: number, theme: string, file: string }
type Browser = Awaited<ReturnType<typeof openBrowser>>
/** a deck in a state */
export type Scene = {
  /** of its admin page */
  url: string,
  signInLink: () => Promise<string> | string,
  /** a path below /api/v1 */
  ask: Ask,
  /** takes the master away from pages that are open */
  leave?: () => Promise<unknown>
}

const WIDTHS = [1440, 768, 390]
const THEMES = ['light', 'dark'] as const
/** Where all rules are asked for; elsewhere those of colour, in the other theme. */
const AUDITED = [1440, 390]
const README_WIDTH = 1280
/** The manual goes on and on. */
const MAX_HEIGHT = 3000

export async function photograph (
  { browser, scene, state, places, folder }: { browser: Browser, scene: Scene, state: string, places: readonly Place[],
    folder: string }
): Promise<{ pictures: Picture[], findings: string[], places: string[] }> {
  const first = await browser.page({ reducedMotion: 'reduce' })
  const context = first.context()
  const subjects = await subjectsOf(scene.ask)
  await first.goto(await scene.signInLink())
  const taken: { pictures: Picture[], findings: string[], places: string[] } = { pictures: [], findings: [],
    places: [] }
  const waiting: (() => Promise<void>)[] = []
  for (const place of places) {
    const where = place.pathOf(subjects)
    if (!where) continue
    const page = await (place.isForeign ? browser.page({ reducedMotion: 'reduce' }) : browser.pageIn(context))
    await page.goto(scene.url + where)
    if (!place.isStill) await page.locator('html[data-live=on]').waitFor()
    await loadCharts(page)
    const develop = async () => {
      await takeAll(page, { state, place: place.name, folder }, taken)
      taken.places.push(place.name)
      await (place.isForeign ? page.context() : page).close()
    }
    if (scene.leave) waiting.push(develop)
    else await develop()
  }
  if (scene.leave) {
    await scene.leave()
    for (const develop of waiting) await develop()
  }
  await context.close()
  return taken
}

/** They load once somebody scrolls to them. */
async function loadCharts (page: WatchedPage) {
  const state = page.locator('#charts-state')
  if (await state.count() === 0) return
  await state.scrollIntoViewIfNeeded()
  await state.filter({ hasNotText: 'Loading' }).waitFor()
  await page.evaluate(() => window.scrollTo(0, 0))
}

async function takeAll (page: WatchedPage, { state, place, folder }: { state: string, place: string, folder: string },
  { pictures, findings }: { pictures: Picture[], findings: string[] })
{
  if (state === 'offline') await page.locator('#offline:not([hidden])').waitFor()
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 })
    for (const theme of THEMES) {
      await page.lookAs(theme)
      const file = `${state}-${place}-${width}-${theme}.png`
      await page.screenshot({ path: path.join(folder, file), ...await frameOf(page), animations: 'disabled' })
      pictures.push({ state, place, width, theme, file })
      if (!AUDITED.includes(width)) continue
      const found = await page.audit({ rules: theme === 'light' ? undefined : RULES_OF_COLOUR })
      findings.push(...found.map((finding) => `${file}: ${finding}`))
    }
    if (await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth))
      findings.push(`${state}-${place}-${width}: wider than the screen`)
  }
  if (state === 'healthy' && place === 'overview') await takeForReadme(page, folder)
  // Chromium reports what was asked for: a page that is not there, and a master that is gone.
  findings.push(
    ...page.problems.filter((problem) =>
      !/status of 404|ERR_CONNECTION_|ERR_EMPTY_RESPONSE|status of 401/.test(problem)
    ).map((problem) => `${state}-${place}: ${problem}`)
  )
}

async function takeForReadme (page: WatchedPage, folder: string) {
  await page.setViewportSize({ width: README_WIDTH, height: 900 })
  // It shows a deck whose hosts all answer.
  await page.evaluate(() =>
    document.querySelectorAll('#silent-hosts, #silent-count, #fleet-turn').forEach((element) => element.remove())
  )
  for (const theme of THEMES) {
    await page.lookAs(theme)
    await page.screenshot({ path: path.join(folder, `readme-${theme}.png`), fullPage: true, animations: 'disabled' })
  }
}

async function frameOf (page: WatchedPage) {
  const { width = 0 } = page.viewportSize() ?? {}
  const height = await page.evaluate(() => document.documentElement.scrollHeight)
  return { fullPage: true, clip: { x: 0, y: 0, width, height: Math.min(height, MAX_HEIGHT) } }
}
