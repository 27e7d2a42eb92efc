/** What somebody sees of a part of a page: a line for each block, with the tone of what has one, and buttons. */
export function seen (html: string): string {
  const text = html.replace(/<(svg|select|script|noscript|progress)[ >].*?<\/\1>/gs, '').replace(/\s+/g, ' ').replace(
    /<button[^>]*>(.*?)<\/button>/g,
    (_, label) => label.trim() && ` (${label.trim()})`
  ).replace(/<(?:tr|li|p|h\d|header|section|form|dl|ol|ul|footer|caption|summary|figure|pre)[ >]/g, '\n$&').replace(
    /<[^>]*class="[^"]*tone-(bad|warn|info|drain)[^>]*>/g,
    ' [$1] '
  ).replace(/<[^>]*>/g, ' ')
  return text.split('\n').map((line) => line.replace(/ +/g, ' ').replace(/ (?=[,.):])/g, '').trim()).filter((line) =>
    /\w/.test(line)
  ).join('\n').replace(/^(\[\w+\])\n/gm, '$1 ').replace(/&(lt|gt|amp|quot|#39);/g,
    (_, name: keyof typeof ENTITIES) => ENTITIES[name])
}

const ENTITIES = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': '\'' }
