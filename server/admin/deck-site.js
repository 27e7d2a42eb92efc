import { livePages } from '../dashboard/pages.js'
import { createViews } from '../dashboard/views.js'
import { createApp } from './app.js'
import { createSite } from './site.js'

/**
 * The site of one deck: its API, its pages, its live page, and in its history who has used them.
 * @param {Omit<import('./app.js').AppParts, 'views'> & { home: string }} parts  `home`: the base path of the port
 */
export function createDeckSite (parts) {
  const { deck, history, basePath, home, now } = parts
  const { version, nodeVersion } = deck.snapshot().master
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software, basePath, home })
  return createSite({
    ...parts,
    events: deck.events,
    software,
    app: createApp({ ...parts, views }),
    pages: livePages({ deck, history, now, render: views.render })
  })
}
