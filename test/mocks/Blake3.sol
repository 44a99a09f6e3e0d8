// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title BLAKE3 of an input of one chunk, written from its specification
/// @dev Votes on payments are on trees that are hashed with it. The contract reads none of them; tests do.
library Blake3 {
    uint256 private constant CHUNK_MAX = 1024;
    uint32 private constant CHUNK_START = 1;
    uint32 private constant CHUNK_END = 2;
    uint32 private constant ROOT = 8;

    function hash(bytes memory input) internal pure returns (bytes32 digest) {
        require(input.length > 0 && input.length <= CHUNK_MAX, "not one chunk");
        uint32[8] memory chained = _iv();
        for (uint256 start = 0; start < input.length; start += 64) {
            uint256 left = input.length - start;
            uint32 flags = (start == 0 ? CHUNK_START : 0) | (left <= 64 ? CHUNK_END | ROOT : 0);
            chained = _compress(chained, _words(input, start), left < 64 ? uint32(left) : 64, flags);
        }
        for (uint256 i = 0; i < 32; ++i) {
            digest |= bytes32(uint256(uint8(chained[i / 4] >> (8 * (i % 4)))) << (8 * (31 - i)));
        }
    }

    /// @dev The first half of a compression's output, which is all that a digest of 32 bytes needs.
    function _compress(uint32[8] memory chained, uint32[16] memory words, uint32 length, uint32 flags)
        private
        pure
        returns (uint32[8] memory out)
    {
        uint32[8] memory iv = _iv();
        uint32[16] memory v;
        for (uint256 i = 0; i < 8; ++i) {
            v[i] = chained[i];
            if (i < 4) v[8 + i] = iv[i];
        }
        (v[14], v[15]) = (length, flags); // 12 and 13 count chunks
        for (uint256 round = 0; round < 7; ++round) {
            if (round > 0) words = _permuted(words);
            for (uint256 i = 0; i < 4; ++i) {
                _mix(v, [i, 4 + i, 8 + i, 12 + i], words[2 * i], words[2 * i + 1]);
            }
            for (uint256 i = 0; i < 4; ++i) {
                _mix(
                    v,
                    [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4],
                    words[8 + 2 * i],
                    words[9 + 2 * i]
                );
            }
        }
        for (uint256 i = 0; i < 8; ++i) {
            out[i] = v[i] ^ v[i + 8];
        }
    }

    function _mix(uint32[16] memory v, uint256[4] memory where, uint32 x, uint32 y) private pure {
        (uint32 a, uint32 b, uint32 c, uint32 d) = (v[where[0]], v[where[1]], v[where[2]], v[where[3]]);
        unchecked {
            a = a + b + x;
            d = _rotated(d ^ a, 16);
            c = c + d;
            b = _rotated(b ^ c, 12);
            a = a + b + y;
            d = _rotated(d ^ a, 8);
            c = c + d;
            b = _rotated(b ^ c, 7);
        }
        (v[where[0]], v[where[1]], v[where[2]], v[where[3]]) = (a, b, c, d);
    }

    function _rotated(uint32 word, uint256 right) private pure returns (uint32) {
        return (word >> right) | (word << (32 - right));
    }

    function _permuted(uint32[16] memory words) private pure returns (uint32[16] memory out) {
        uint8[16] memory from = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
        for (uint256 i = 0; i < 16; ++i) {
            out[i] = words[from[i]];
        }
    }

    /// @dev Up to 64 bytes of the input as little-endian words, with zeros after its end.
    function _words(bytes memory input, uint256 start) private pure returns (uint32[16] memory words) {
        for (uint256 i = 0; i < 64 && start + i < input.length; ++i) {
            words[i / 4] |= uint32(uint8(input[start + i])) << uint32(8 * (i % 4));
        }
    }

    function _iv() private pure returns (uint32[8] memory) {
        return [
            uint32(0x6a09e667),
            0xbb67ae85,
            0x3c6ef372,
            0xa54ff53a,
            0x510e527f,
            0x9b05688c,
            0x1f83d9ab,
            0x5be0cd19
        ];
    }
}
