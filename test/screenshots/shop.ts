import { startAdmin, startHostAdmin, TOKEN, type Admin as Site } from '../support/admin.ts'
import { present } from '../support/present.ts'
import { createClock, type Admin, type Life } from './life.ts'
import { fleetOf } from './shop-fleet.ts'
import { addNeighbours } from './shop-host.ts'
import { tellStory, type Ending } from './story.ts'
import type { Scene } from './camera.ts'
import type { TestOwner } from '../support/deck.ts'

/** A shop that has been served for days: what nobody can wait for is told to a deck without processes. */
export type Shop = Scene & { close: () => Promise<unknown>, life: Life } & Admin

const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

type Telling = { ending?: Ending, isBrief?: boolean }

/** `ending`: what has just happened to it; `isBrief`: soon, with few figures of days before */
export async function openShop (owner: TestOwner, telling: Telling = {}): Promise<Shop> {
  const clock = createClock()
  const site = await startAdmin(owner, { now: clock.now, timers: REAL_TIMERS })
  const life = await open(owner, site, { users: site, clock, ...telling })
  return sceneOf(site, { ...site, life })
}

/** The same as one of the apps of a host. */
export async function openShopInHost (owner: TestOwner, telling: Telling = {}): Promise<Shop> {
  const { site, shop } = await openHost(owner, telling)
  return sceneOf({ ...site, url: `${site.url}/apps/shop` }, shop)
}

/** The host itself, with the shop among its apps. */
export async function openHostOfShop (owner: TestOwner): Promise<Shop> {
  const { site, shop } = await openHost(owner)
  addNeighbours(owner, site)
  return { ...sceneOf(site, shop), ask: askAt(`${site.url}/apps/shop`) }
}

async function openHost (owner: TestOwner, telling: Telling = {}) {
  const clock = createClock()
  const site = await startHostAdmin(owner, { names: ['shop'], now: clock.now, timers: REAL_TIMERS })
  const shop = { deck: site.apps.deck('shop'), history: present(site.apps.opened('shop')).history }
  const life = await open(owner, shop, { users: site, clock, ...telling })
  return { site, shop: { ...shop, life } }
}

async function open (owner: TestOwner, shop: Admin,
  { users, ...telling }: Telling & { users: Pick<Site, 'tokenFor' | 'signInBy'>,
    clock: ReturnType<typeof createClock> })
{
  const life = await tellStory(shop, users, telling)
  shop.deck.fleet = fleetOf(shop, { isDeploying: !telling.ending })
  const timer = setInterval(() => void life.goTo(Date.now()), 1000)
  owner.after(() => clearInterval(timer))
  return life
}

function sceneOf ({ url, admin }: { url: string, admin: Site['admin'] },
  { deck, history, life }: Admin & { life: Life }): Shop
{
  return { url, signInLink: admin.signInLink, ask: askAt(url), close: () => admin.close(), deck, history, life }
}

function askAt (url: string): Scene['ask'] {
  return async <T>(where: string) =>
    (await fetch(`${url}/api/v1${where}`, { headers: { authorization: `Bearer ${TOKEN}` } })).json() as T
}
