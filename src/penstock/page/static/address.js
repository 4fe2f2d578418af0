// The addresses of the API, the same for the server and for a recording.

/** `/v1/consumers?with=partitions`; options without a value are left out. */
export function addressOf(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  return `/v1/${path}${query}`;
}

/** `partitions/orders/3` of `orders-3`. */
export function partitionPath(name) {
  const place = name.lastIndexOf("-");
  return `partitions/${encodeURIComponent(name.slice(0, place))}/${encodeURIComponent(name.slice(place + 1))}`;
}

/** A part of an address as it was meant; one that nobody can decode, as it is written. */
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
