//! Keys, values and their order: the same for every store.

/// Returns the key of entry `index`: 16 bytes, ascending.
pub fn key(index: u64) -> [u8; 16] {
    let mut key = *b"0000000000000000";
    key[..8].copy_from_slice(&index.to_be_bytes());
    key
}

/// Returns a key without an entry, directly after that of entry `index`.
pub fn missing_key(index: u64) -> [u8; 16] {
    let mut key = key(index);
    key[15] = b'1';
    key
}

/// xorshift64 random number generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(2).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for _ in 0..8 {
            random.next();
        }
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A random permutation of `0..count` without a table: a Feistel network with cycle walking.
#[derive(Clone, Copy)]
pub struct Shuffle {
    count: u64,
    half_bits: u32,
}

impl Shuffle {
    pub fn new(count: u64) -> Shuffle {
        let bits = 64 - (count - 1).leading_zeros();
        Shuffle { count, half_bits: bits.div_ceil(2).max(1) }
    }

    /// Returns the number at `place` of the permutation.
    pub fn at(&self, place: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut number = place;
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for round in 0..4_u64 {
                let mixed = (right ^ (round << 40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
                (left, right) = (right, (left ^ (mixed >> 32)) & mask);
            }
            number = (left << self.half_bits) | right;
            if number < self.count {
                return number;
            }
        }
    }
}

/// Values of one size; the second half of each repeats the first, so that they compress to about
/// half.
pub struct Values {
    bytes: Vec<u8>,
    size: usize,
}

impl Values {
    pub fn new(size: usize) -> Values {
        let mut random = Random::new(7);
        let mut bytes = Vec::with_capacity((1 << 20) + size);
        while bytes.len() < 1 << 20 {
            let start = bytes.len();
            let half = (size / 2).max(1);
            bytes.extend((0..half).map(|_| 32 + (random.next() >> 33) as u8 % 95));
            for index in 0..size - half {
                bytes.push(bytes[start + index % half]);
            }
        }
        Values { bytes, size }
    }

    /// Returns the value of entry `index`.
    pub fn at(&self, index: u64) -> &[u8] {
        let slots = (self.bytes.len() / self.size) as u64;
        let slot = (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % slots;
        &self.bytes[slot as usize * self.size..][..self.size]
    }
}
