import { textOfValue } from '../config/value-text.js'

/** @typedef {Pick<import('../deck.js').Deck['settings'], 'list' | 'digest'>} Settings */
/** @typedef {ReturnType<Settings['list']>[number]} Setting */

/** The elements of the page that change, by id; each is the partial of the same name. */
export const SETTINGS_FRAGMENTS = Object.freeze(['settings'])

/** Tabs by the value of `show` in the URL. @type {Readonly<Record<string, { label: string, isShown: (setting: Setting) => boolean }>>} */
const VIEWS = Object.freeze({
  all: { label: 'All', isShown: () => true },
  set: { label: 'Not the default', isShown: ({ source }) => source !== 'default' },
  live: { label: 'Can change now', isShown: ({ isLive }) => isLive }
})

/** @param {{ settings: Settings, params: URLSearchParams }} parts */
export function settingsModel ({ settings, params }) {
  const wanted = params.get('show') ?? 'all'
  const current = Object.hasOwn(VIEWS, wanted) ? wanted : 'all'
  const shown = settings.list().filter(VIEWS[current].isShown)
  const names = [...new Set(shown.map(({ name }) => groupOf(name)))]
  return {
    tag: settings.digest(),
    tabs: Object.entries(VIEWS).map(([name, { label }]) => {
      return { label, url: name === 'all' ? '/settings' : `/settings?show=${name}`, isCurrent: name === current }
    }),
    groups: names.map((name) => ({ name, settings: shown.filter((setting) => groupOf(setting.name) === name).map(toShown) }))
  }
}

/** @param {string} name @returns {string} empty without a group */
function groupOf (name) {
  return name.includes('.') ? name.split('.')[0] : ''
}

/** @param {Setting} setting */
function toShown ({ value, default: fallback, source, ...setting }) {
  return {
    ...setting,
    source,
    value: value === null ? null : textOfValue(value),
    default: source === 'default' || setting.isSecret || fallback === null ? null : textOfValue(fallback),
    // A default holds no secret.
    isHidden: setting.isSecret && source !== 'default',
    canChange: setting.isLive && !setting.isSecret
  }
}
