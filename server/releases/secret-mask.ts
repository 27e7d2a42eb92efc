import { withoutUrlSecrets } from '../system/without-url-secrets.ts'

export type SecretMask = ReturnType<typeof createSecretMask>

/** Shorter values are parts of many texts, which nobody could read any more. */
const MIN_CHARS = 8

/**
 * Hides values of secrets in what is recorded, shown or sent: an app may throw its password, and a hook may print it.
 * Values stay hidden after they have changed.
 */
export function createSecretMask () {
  /**
   * Names of secrets by their values and by each line of these, as a log may show a value of several lines line by
   * line.
   */
  const names: Map<string, string> = new Map()
  let pattern: RegExp | null = null

  return {
    add (secrets: Readonly<Record<string, string>>) {
      for (const [name, value] of Object.entries(secrets)) {
        for (const text of [value, ...value.split(/\r?\n/)])
          if (text.length >= MIN_CHARS && !names.has(text)) names.set(text, name)
      }
      // Longer ones first: a value that is the beginning of another one would leave the rest of that.
      const texts = [...names.keys()].sort((a, b) => b.length - a.length)
      if (texts.length > 0)
        pattern = new RegExp(texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'), 'g')
    },

    /** And what is secret in addresses. `content`: plain data. */
    hide: <T>(content: T): T =>
      (pattern === null && !JSON.stringify(content)?.includes('://') ? content : hideIn(content)) as T,

    /** The values alone: what a command writes may be data for somebody. */
    hideValues
  }

  function hideValues (text: string) {
    return pattern === null ? text : text.replace(pattern, (value) => `[${names.get(value)}]`)
  }

  function hideIn (content: unknown): unknown {
    if (typeof content === 'string') return withoutUrlSecrets(hideValues(content))
    if (Array.isArray(content)) return content.map(hideIn)
    if (typeof content !== 'object' || content === null) return content
    return Object.fromEntries(Object.entries(content).map(([key, value]) => [key, hideIn(value)]))
  }
}
