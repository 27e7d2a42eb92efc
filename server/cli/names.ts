/** `list`: such as `shop,mail` */
export function namesIn (list: string | undefined): string[] {
  return list?.split(',').map((name) => name.trim()).filter(Boolean) ?? []
}
